"""Contents of cuts and tables of jobs that go on with other numbers of trainers and pservers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

import numpy as np

from psrt.partition.plan import PartitionPlan
from psrt.pserver.checkpoints import SavedCut
from tests.sim.cuts import restored
from tests.sim.ledger import PLAN, SHARED, UNIT, described, row_of, step_of

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


@dataclass
class Doubts:
    """Steps of trainers in Geo that were killed, and begun anew.

    `repeated` ones were begun again so often; those `in_part` may have been lost with a process
    that held their changes.
    """

    repeated: Counter[tuple[int, int]] = field(default_factory=Counter)
    in_part: set[tuple[int, int]] = field(default_factory=set)

    def bounds(self, step: tuple[int, int], is_expected: bool) -> tuple[int, int]:
        """The least and the greatest number of times that a step may be applied."""
        least = int(is_expected and step not in self.in_part)
        return least, is_expected + self.repeated[step]


NO_DOUBTS = Doubts()


def check_content(
    where: str,
    held: Content,
    expected: Set[tuple[int, int]],
    is_geo: bool,
    is_even: bool,
    doubts: Doubts = NO_DOUBTS,
) -> None:
    """Raise `AssertionError` unless tables hold exactly the `expected` steps, each once.

    If it `is_even`, no process of a trainer was replaced, and all values are those of the rows.
    """
    own = {row: value for row, value in held.rows.items() if row >= 0 and row != SHARED}
    steps = {row: step_of(row)[::2] for row in own}
    most = ROUNDING if is_geo else 0.0
    for step in sorted(expected - set(steps.values())):
        least, _ = doubts.bounds(step, is_expected=True)
        assert not least, f"{where}: {described(row_of(step[0], 0, step[1]))} is not in it"
    shares = [UNIT] if is_geo else [UNIT / n for n in range(1, MOST_TRAINERS + 1)]
    for row, value in own.items():
        least, greatest = doubts.bounds(steps[row], steps[row] in expected)
        assert greatest, f"{where}: {described(row)} is in it"
        is_once = any(least * share - most <= value <= greatest * share + most for share in shares)
        assert is_once, f"{where}: {described(row)} {value / UNIT:g} times applied"
    if is_even:
        _check_sums(where, held, sum(own.values()), most * len(own))


def _check_sums(where: str, held: Content, total: float, most: float) -> None:
    shared = held.rows.get(SHARED, 0.0)
    assert abs(shared - total) <= most, f"{where}: the shared row holds {shared}, not {total}"
    for name, values in held.dense.items():
        is_whole = (abs(values - total) <= most).all()
        assert is_whole, f"{where}: {name} holds {values.reshape(-1)}, not {total}"
