"""Steps of a job as data of its trainers: their shares, and what is left at the positions of a cut.

A position is the list of steps that are left to a trainer, as JSON. Trainers that have not joined a
resumed job have that of the cut, or a text that names their share of all of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from tests.sim.cuts import COMPLETED, LOST

Steps: TypeAlias = list[tuple[int, int]]
"""Steps to train, by the trainer whose they were at the beginning."""


def all_steps(counts: Sequence[int]) -> Steps:
    """Every step of the job: `counts` of each trainer of its beginning."""
    return [(owner, step) for owner, count in enumerate(counts) for step in range(count)]


def left_to(position: str, trainer: int, trainers: int, whole: Sequence[tuple[int, int]]) -> Steps:
    """The steps that `trainer` of `trainers` has before it at a position; "" = its share of the
    `whole` job."""
    if position in (COMPLETED, LOST):
        return []
    if not position:
        return list(whole[trainer::trainers])
    found = json.loads(position)
    if isinstance(found, dict):
        deal = found["deal"]
        return share_of(deal["positions"], deal["trainer"], deal["trainers"], whole)
    return [(owner, step) for owner, step in found]


def share_of(
    positions: Sequence[str], trainer: int, trainers: int, whole: Sequence[tuple[int, int]]
) -> Steps:
    """The share of one of `trainers` of all that is left at `positions`."""
    left = [left_to(text, of, len(positions), whole) for of, text in enumerate(positions)]
    return [step for steps in left for step in steps][trainer::trainers]
