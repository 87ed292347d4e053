"""A cut that all trainers of a torch job make together, behind the same step.

Trainers meet, agree on the newest cut that any of them has taken part in, and the first of them
asks for the next one. So no trainer has steps in it that it took after they met, and the torch
parts of all ranks fit. In Sync they join rounds without gradients until all have taken part.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any

from psrt.communicator.base import Communicator
from psrt.core.errors import ConfigError, ErrorCode, JobError, PsrtError
from psrt.core.specs import CommunicationMode, Sync
from psrt.core.threads import CrashReport, start_thread
from psrt.trainer.training import ConnectedCluster

log = logging.getLogger("psrt.torch")

_TAKEN, _FAILED = "taken", "failed"

ATTEMPTS = 4
"""Cuts of a durable job that are begun for one call: a pserver that is killed ends one of them."""


def make_cut(
    cluster: ConnectedCluster,
    mode: CommunicationMode,
    trainer_id: int,
    timeout_s: float,
    attempts: int = 1,
) -> int:
    """Make a cut; every trainer that has not completed calls it after its step.

    Returns its number once it is complete. Raises `ConfigError` on all of them if the pservers
    write no cuts, and `JobError` if `attempts` cuts are given up: training may go on then.
    """
    communicator = cluster.communicator
    if not communicator.makes_cuts:
        raise ConfigError(
            "a cut was asked for, and the pservers write none; nothing was saved.",
            hint="Start them with --checkpoint-dir DIR.",
        )
    while True:
        attempts -= 1
        end = _attempt(cluster, mode, trainer_id, timeout_s)
        if not (attempts and end.get("is_given_up")):
            return _number_in(end)
        log.warning("%s It is made again.", end["problem"])


def _attempt(
    cluster: ConnectedCluster, mode: CommunicationMode, trainer_id: int, timeout_s: float
) -> dict[str, Any]:
    """The end of one cut, as all trainers get it: its number, or a problem."""
    communicator = cluster.communicator
    taken = cluster.tell("cut begins", str(communicator.taken_cut), timeout_s)
    behind = max(int(each) for each in taken if each)
    leads = next(n for n, each in enumerate(taken) if each) == trainer_id
    asked = _ask(communicator, timeout_s, behind) if leads else None
    if isinstance(mode, Sync):
        _join_rounds(cluster, behind, asked, timeout_s)
    with communicator.at_rest():
        ends = cluster.tell("cut ends", _end_of(asked, timeout_s), timeout_s)
    found = [json.loads(each) for each in ends if each]
    return next(each for each in found if "number" in each or "problem" in each)


def _ask(communicator: Communicator, timeout_s: float, behind: int) -> Future[int]:
    """Ask for a cut on a thread: in Sync the training thread joins rounds meanwhile."""
    asked: Future[int] = Future()

    def ask() -> None:
        try:
            asked.set_result(communicator.request_cut(timeout_s, behind))
        except PsrtError as error:
            asked.set_exception(error)

    start_thread(ask, "cut", CrashReport(asked.set_exception))
    return asked


def _join_rounds(
    cluster: ConnectedCluster, behind: int, asked: Future[int] | None, timeout_s: float
) -> None:
    """Close rounds without gradients until all trainers have taken part, or the cut has failed."""
    while True:
        cluster.communicator.finish({})
        mine = _TAKEN if cluster.communicator.taken_cut > behind else "waits"
        if asked is not None and asked.done() and asked.exception() is not None:
            mine = _FAILED
        states = [each for each in cluster.tell("cut rounds", mine, timeout_s) if each]
        if _FAILED in states or set(states) == {_TAKEN}:
            return


def _end_of(asked: Future[int] | None, timeout_s: float) -> str:
    """The note about the end of a cut: of the trainer that asked for it, with its number."""
    if asked is None:
        return json.dumps({"asks": False})
    wait_for([asked], timeout_s)
    error = asked.exception() if asked.done() else JobError(f"no cut within {timeout_s:.0f} s.")
    if error is None:
        return json.dumps({"number": asked.result()})
    problem = str(getattr(error, "message", error))
    is_given_up = getattr(error, "code", None) is ErrorCode.CUT_GIVEN_UP
    return json.dumps({"problem": problem, "is_given_up": is_given_up})


def _number_in(found: dict[str, Any]) -> int:
    if "problem" in found:
        raise JobError(
            f"{found['problem']} Nothing was saved; training may go on.",
            code=ErrorCode.CUT_GIVEN_UP,
        )
    return int(found["number"])
