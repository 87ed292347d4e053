"""Torch jobs on pservers that are killed, real processes: training goes on, examples count once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.specs import Geo  # noqa: E402
from tests.support.carriers import eventually  # noqa: E402
from tests.support.pserver import DaemonProcess, daemon, onlooker, status  # noqa: E402
from tests.support.torch_ledger import LONGEST_S, STEPS, TRAINERS, check_counts, train  # noqa: E402
from tests.support.torch_sessions import trained  # noqa: E402

Found = list[dict[str, np.ndarray]]


class Pservers:
    """Two pservers with a failpoint, and their successors."""

    def __init__(self, stack: contextlib.ExitStack, place: Path, killed: str, *flags: str) -> None:
        self._stack, self._place, self._flags = stack, place, flags
        self.first = [self._started(f"first-{n}", PSRT_FAILPOINT=killed) for n in (0, 1)]

    def start_again(self, number: int, *flags: str) -> DaemonProcess:
        """Wait for the end of a killed pserver, and start it again."""
        dead = self.first[number]
        assert dead.exit_code() == -9
        port = dead.endpoint.rpartition(":")[2]
        return self._started(f"again-{number}", "--port", port, *flags)

    def _started(self, name: str, *flags: str, **variables: str) -> DaemonProcess:
        (self._place / name).mkdir(parents=True)
        place = daemon(self._place / name, *self._flags, *flags, **variables)
        return self._stack.enter_context(place)


@contextlib.contextmanager
def training(
    pservers: Any, mode: Any, body: Any = train, **further: Any
) -> Iterator[Future[Found]]:
    """Both trainers on threads."""
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(trained, pservers, mode, body, TRAINERS, **further)


def run_whole(place: Path) -> dict[str, np.ndarray]:
    """Parameters of trainer 0 in sync if nobody is killed."""
    with contextlib.ExitStack() as stack:
        found = trained(Pservers(stack, place, "").first, "sync", train, TRAINERS)[0]
    check_counts(found)
    return found


def run_killed(
    place: Path, mode: Any, durability: str, killed: str, *flags: str, body: Any = train
) -> tuple[Found, list[str]]:
    """Parameters that trainers have found, and the logs of the pservers that went on."""
    flags = "--checkpoint-dir", str(place / "cuts"), *flags
    with contextlib.ExitStack() as stack:
        servers = Pservers(stack, place, killed, *flags)
        with training(servers.first, mode, body, durability=durability) as running:
            again = [servers.start_again(number, "--recover") for number in (0, 1)]
            found = running.result(LONGEST_S)
        assert [each.exit_code() for each in again] == [0, 0]
        return found, [each.log.read_text() for each in again]


def test_in_sync_pservers_that_are_killed_before_the_first_cut_change_no_bit(
    tmp_path: Path,
) -> None:
    found, logs = run_killed(tmp_path / "killed", "sync", "cut", "cut.frozen=kill")
    expected = run_whole(tmp_path / "whole")

    assert all("goes on with the beginning" in log for log in logs)
    for each in found:
        for name, values in expected.items():
            np.testing.assert_array_equal(each[name], values, err_msg=name)


@pytest.mark.parametrize(
    "mode",
    [
        "async",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("ssp", "half_async")),
        pytest.param(Geo(update_frequency=2), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_each_example_counts_once_though_pservers_are_killed(tmp_path: Path, mode: Any) -> None:
    killed, flags = "push.after_apply=kill@6", ("--delta-every-s", "0.1")
    body = partial(train, ahead=mode == "async")  # pushes bring rows
    found, _ = run_killed(tmp_path, mode, "delta", killed, *flags, body=body)

    for each in found:
        check_counts(each)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_save_goes_on_though_both_pservers_are_killed_in_its_cut(
    tmp_path: Path, mode: str
) -> None:
    cuts, saved_cuts = str(tmp_path / "cuts"), list[int]()

    def save(saved: pt.Checkpointer, step: int) -> None:
        if step == STEPS // 2:
            saved_cuts.append(saved.save(cuts))

    with contextlib.ExitStack() as stack:
        servers = Pservers(stack, tmp_path, "cut.after_part=kill@2", "--checkpoint-dir", cuts)
        body = partial(train, on_step=save)
        with training(servers.first, mode, body, durability="cut") as running:
            again = [servers.start_again(number, "--recover") for number in (0, 1)]
            for each in running.result(LONGEST_S):
                check_counts(each)
        assert [each.exit_code() for each in again] == [0, 0]
    assert len(set(saved_cuts)) == 1


@pytest.mark.long
def test_in_sync_a_backup_takes_over_without_a_changed_bit(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        servers = Pservers(stack, tmp_path / "killed", "")

        def kill(saved: pt.Checkpointer, step: int) -> None:
            if step == STEPS // 2:
                eventually(has_copy, "a copy of part 1", LONGEST_S)
                os.kill(servers.first[1].facts["pid"], signal.SIGKILL)

        def has_copy() -> bool:
            client = onlooker(servers.first[0].endpoint)
            try:
                parts = status(client).get("parts", [])
            finally:
                client.close()
            return any(each["part"] == 1 and each["role"] == "copy" for each in parts)

        def body(session: pt.TableSession, rank: int) -> dict[str, np.ndarray]:
            return train(session, rank, **({"on_step": kill} if rank == 0 else {}))

        with training(servers.first, "sync", body, durability="replica") as running:
            again = servers.start_again(1)
            found = running.result(LONGEST_S)
        assert again.exit_code() == 0
        assert "serves part 1" in servers.first[0].log.read_text()

    expected = run_whole(tmp_path / "whole")
    for each in found:
        for name, values in expected.items():
            np.testing.assert_array_equal(each[name], values, err_msg=name)
