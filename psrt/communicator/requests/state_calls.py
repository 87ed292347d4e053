"""Calls about trainer states: what only a trainer of Geo holds, into a cut and from one.

A page is one call of some MiB. Pservers write a page that arrives twice once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from psrt.core.errors import WireError
from psrt.core.types import Array
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method


class StatePage(NamedTuple):
    """A part of a trainer state: `meta` is JSON, `arrays` are of dtypes that travel."""

    meta: dict[str, Any]
    arrays: dict[str, Array]


def send_state(client: Client, cut: int, pages: Sequence[StatePage], timeout_s: float) -> None:
    """Let the pserver of `client` write the caller's state into a cut; each call has the limit.

    Raises `JobError` CUT_GIVEN_UP if the pserver no longer waits for it.
    """
    for number, page in enumerate(pages):
        sent = pb.StatePage(cut=cut, page=number, meta=json.dumps(page.meta), arrays=page.arrays)
        sent.last = number + 1 == len(pages)
        header, tensors = pb.Header(state_page=sent), list(page.arrays.values())
        client.call(Method.KEEP_STATE, header=header, tensors=tensors, timeout_s=timeout_s)


def stored_states(client: Client, timeout_s: float) -> Iterator[tuple[int, StatePage]]:
    """Pages of the resumed cut that the caller goes on from, each with its trainer.

    They are those of its own number, then, if that cut has more trainers than this job, of every
    T-th number behind it.
    """
    trainer, saved = client.trainer, client.trainer + 1
    while trainer < saved:
        number, is_last = 0, False
        while not is_last:
            asked = pb.StatePage(trainer=trainer, page=number)
            header = pb.Header(state_page=asked)
            reply = client.call(Method.READ_STATE, header=header, timeout_s=timeout_s)
            found = reply.header.state_page
            saved, is_last, number = found.trainers, found.last, number + 1
            if found.meta:
                yield trainer, _page(found, reply.tensors)
        trainer += client.trainers


def _page(found: pb.StatePage, tensors: Sequence[Array]) -> StatePage:
    if len(found.arrays) != len(tensors):
        raise WireError(
            f"a reply holds {len(tensors)} arrays of a trainer state, but {len(found.arrays)} names"
        )
    return StatePage(json.loads(found.meta), dict(zip(found.arrays, tensors, strict=True)))
