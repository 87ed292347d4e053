"""Contents of cuts and tables of jobs that go on with other numbers of trainers and pservers."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import numpy as np

from psrt.partition.plan import PartitionPlan
from psrt.pserver.checkpoints import SavedCut
from tests.sim.cuts import restored
from tests.sim.ledger import PLAN, SHARED, UNIT, described, row_of

ROUNDING = 1.0
"""Most that a change in Geo may be off that was pushed in shares: far below one share of `UNIT`."""
MOST_TRAINERS = 3


@dataclass(frozen=True)
class Content:
    """Values of rows by id, and of dense blocks by name."""

    rows: Mapping[int, float]
    dense: Mapping[str, np.ndarray]


def plan_on(pservers: int) -> PartitionPlan:
    """`PLAN`, on so many pservers."""
    endpoints = tuple(f"ps{number}:6170" for number in range(pservers))
    places = {each: endpoints[n % pservers] for n, each in enumerate(PLAN.endpoints)}
    blocks = (replace(block, endpoint=places[block.endpoint]) for block in PLAN.blocks)
    return replace(PLAN, endpoints=endpoints, blocks=tuple(blocks))


def content_of(cut: SavedCut, is_geo: bool) -> Content:
    """The content of a cut; in Geo with what trainers hold."""
    return Content(*restored(cut, is_geo))


def check_content(
    where: str, held: Content, expected: Set[tuple[int, int]], is_geo: bool, is_even: bool
) -> None:
    """Raise `AssertionError` unless tables hold exactly the `expected` steps, each once.

    If it `is_even`, no process of a trainer was replaced, and all values are those of the rows.
    """
    own = {row: value for row, value in held.rows.items() if row >= 0 and row != SHARED}
    rows = {row_of(owner, 0, step) for owner, step in expected}
    for row in sorted(rows ^ own.keys()):
        verb = "is not in" if row in rows else "is in"
        raise AssertionError(f"{where}: {described(row)} {verb} it")
    shares = [UNIT] if is_geo else [UNIT / n for n in range(1, MOST_TRAINERS + 1)]
    most = ROUNDING if is_geo else 0.0
    for row, value in own.items():
        is_once = any(abs(value - share) <= most for share in shares)
        assert is_once, f"{where}: {described(row)} {value / UNIT:g} times applied"
    if is_even:
        _check_sums(where, held, sum(own.values()), most * len(own))


def _check_sums(where: str, held: Content, total: float, most: float) -> None:
    shared = held.rows.get(SHARED, 0.0)
    assert abs(shared - total) <= most, f"{where}: the shared row holds {shared}, not {total}"
    for name, values in held.dense.items():
        is_whole = (abs(values - total) <= most).all()
        assert is_whole, f"{where}: {name} holds {values.reshape(-1)}, not {total}"
