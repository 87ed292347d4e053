"""The ledger of a round: reports of trainers, and checks of tables and cuts against them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from psrt.core import specs
from psrt.pserver.checkpoints import SavedCut
from psrt.pserver.tables import DenseTable, TableRegistry
from tests.faults.ledger_job import MODES, plan_of
from tests.sim.ledger import SHARED, UNIT, Ledger, described, row_of, step_of
from tests.support.geo_cuts import residuals_in

Step = tuple[int, int, int]
"""Trainer, number of its process, step."""

ROUNDING = 1e-3
"""Most that shares of a change, pushed one by one in Geo, differ from the whole change."""


@dataclass(frozen=True)
class Values:
    """Rows by id (width,) and dense parameters (size,) of all pservers."""

    rows: dict[int, np.ndarray]
    dense: dict[str, np.ndarray]

    @property
    def own(self) -> dict[int, float]:
        """First column of the rows of single steps."""
        return {row: float(v[0]) for row, v in self.rows.items() if row != SHARED}

    @property
    def shared(self) -> float:
        return float(self.rows[SHARED][0]) if SHARED in self.rows else 0.0


def values_of(dumps: Iterable[Path]) -> Values:
    """The values that pservers wrote at their end."""
    rows: dict[int, np.ndarray] = {}
    blocks: dict[str, np.ndarray] = {}
    for path in dumps:
        with np.load(path) as held:
            rows |= dict(zip(held["ids"].tolist(), held["weights"], strict=True))
            blocks |= {name: held[name] for name in held.files if "@" in name}
    return Values(rows, joined(blocks))


def values_in(cut: SavedCut, elements: int, mode: str) -> Values:
    """The values in a cut."""
    plan, tables = plan_of(("a",), elements, mode), TableRegistry(1)
    tables.register([*(b.spec for b in plan.blocks), *plan.sparse], prepare=cut.restore_into)
    ids, weights, _ = tables.sparse("emb").export(0, 1 << 20)
    blocks = {
        f"{t.spec.parameter}@{t.spec.offset:09d}": t.read()[0].reshape(-1)
        for t in tables.all()
        if isinstance(t, DenseTable)
    }
    held = Values(dict(zip(ids.tolist(), weights, strict=True)), joined(blocks))
    if isinstance(MODES[mode], specs.Geo):
        _add_residuals(held, cut, elements)
    return held


def _add_residuals(held: Values, cut: SavedCut, elements: int) -> None:
    """Add what trainers of Geo have not pushed."""
    plan = plan_of(("a",), elements, "sync")
    for left in residuals_in(cut, plan, plan.sparse[0]):
        for row, change in zip(left.rows.ids.tolist(), left.rows.values, strict=True):
            held.rows[row] = held.rows.get(row, np.zeros_like(change)) + change
        for name, changes in left.dense.items():
            held.dense[name] = held.dense[name] + changes


def joined(blocks: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    parts: dict[str, list[np.ndarray]] = defaultdict(list)
    for name in sorted(blocks):
        parts[name.partition("@")[0]].append(blocks[name])
    return {name: np.concatenate(each) for name, each in parts.items()}


@dataclass
class Books:
    """Steps that were sent and acknowledged: `history` all, the others those that still count."""

    mode: str
    trainers: int
    history: set[Step] = field(default_factory=set)
    sent: set[Step] = field(default_factory=set)
    acknowledged: set[Step] = field(default_factory=set)
    was_replaced: bool = False

    @property
    def means(self) -> bool:
        return isinstance(MODES[self.mode], specs.Sync)

    @property
    def is_geo(self) -> bool:
        return isinstance(MODES[self.mode], specs.Geo)

    def send(self, step: Step) -> None:
        self.history.add(step)
        self.sent.add(step)

    def acknowledge(self, trainer: int, process: int) -> None:
        """Record that every step sent by a process was acknowledged."""
        self.acknowledged |= {each for each in self.sent if each[:2] == (trainer, process)}

    def begin_anew(self) -> None:
        self.sent, self.acknowledged, self.was_replaced = set(), set(), False

    def go_on_from(self, cut: SavedCut) -> None:
        """Forget the steps that a job which resumes `cut` repeats."""
        positions = {t: _position(cut.position_of(t)) for t in range(self.trainers)}
        known = [p for p in positions.values() if p is not None]
        even = len({steps for _, steps in known}) <= 1 and len(known) == self.trainers
        self.was_replaced = self.was_replaced or not even
        before, after = self.sent, {t for t, p in positions.items() if p is None}
        self.sent = {s for s in before if s[0] in after or s[1:] < positions[s[0]]}
        done = {s for s in self.sent if s[0] not in after and s[1] == positions[s[0]][0]}
        self.acknowledged = {s for s in self.acknowledged & self.sent if s[0] not in after} | done

    def check(self, held: Values) -> None:
        """Raise `AssertionError` unless tables of a completed job hold what was acknowledged."""
        ledger = Ledger(self.trainers, _rows(self.sent), _rows(self.acknowledged))
        first = {row: value[0] for row, value in held.rows.items()}
        if self.is_geo:
            _check_geo(ledger, held)
            return
        ledger.check(first, {"w": held.dense["w"]}, MODES[self.mode])

    def check_cut(self, cut: SavedCut, held: Values, is_whole: bool) -> None:
        """Raise `AssertionError` unless a cut holds exactly the steps before its positions.

        With `is_whole` no process was replaced: all tables have the same steps.
        """
        where, own = f"cut {cut.number}", held.own
        for row, value in own.items():
            is_once = self._is_once(row, value, cut)
            assert is_once, f"{where}: {described(row)} {value / UNIT:g} times applied"
        for trainer in range(self.trainers):
            position = _position(cut.position_of(trainer))
            if position is not None and cut.position_of(trainer) != "completed":
                self._check_trainer(where, trainer, position, own)
        if is_whole:
            total, most = sum(own.values()), ROUNDING * len(own) if self.is_geo else 0.0
            assert abs(held.shared - total) <= most, f"{where}: the shared row is torn"
            assert (abs(held.dense["w"] - total) <= most).all(), f"{where}: w is torn"

    def _is_once(self, row: int, value: float, cut: SavedCut) -> bool:
        """Return True if a row in a cut holds its step once.

        In Geo a step of a trainer that took part is whole: pushed, or among what it holds.
        """
        if self.is_geo:
            trainer, process, _ = step_of(row)
            position = _position(cut.position_of(trainer))
            is_part = position is None or position[0] != process
            least = 0.0 if is_part else UNIT
            return least - ROUNDING <= value <= UNIT + ROUNDING
        counts = range(1, self.trainers + 1) if self.means else (1,)
        return value in {UNIT / count for count in counts}

    def _check_trainer(
        self, where: str, trainer: int, position: tuple[int, int], own: Mapping[int, float]
    ) -> None:
        process, steps = position
        mine = {s for s in self.history if s[:2] == (trainer, process)}
        expected = _rows({s for s in mine if s[2] < steps})
        found = _rows(mine) & own.keys()
        for row in sorted(expected ^ found):
            verb = "is not in" if row in expected else "is in"
            raise AssertionError(
                f"{where}: {described(row)} {verb} it, the trainer was after step {steps}"
            )


def check_bits(held: Values, expected: Values, steps: Iterable[Step]) -> None:
    """Raise `AssertionError` unless all values are those of a run without faults, to the bit.

    Rows of steps have other ids in each process; `steps` are those that were sent.
    """
    for name, values in expected.dense.items():
        same = held.dense[name].tobytes() == values.tobytes()
        assert same, f"{name} differs from a run without faults"
    assert held.rows[SHARED].tobytes() == expected.rows[SHARED].tobytes(), "the shared row differs"
    for trainer, process, step in sorted(steps):
        row, twin = row_of(trainer, process, step), row_of(trainer, 0, step)
        same = held.rows[row].tobytes() == expected.rows[twin].tobytes()
        assert same, f"{described(row)} differs from a run without faults"


def _check_geo(ledger: Ledger, held: Values) -> None:
    """Changes travel in parts; all of a completed trainer's are applied, to rounding."""
    for row, value in sorted(held.own.items()):
        assert row in ledger.sent, f"{described(row)}: applied, but never sent"
        assert -ROUNDING <= value <= UNIT + ROUNDING, f"{described(row)}: holds {value}"
    for row in sorted(ledger.acknowledged):
        value = held.own.get(row, 0.0)
        assert abs(value - UNIT) < ROUNDING, f"{described(row)}: acknowledged, holds {value}"
    most = UNIT * len(ledger.sent) * 1.0001 + 1e-2
    least = UNIT * len(ledger.acknowledged) * 0.9999 - 1e-2
    assert least <= held.shared <= most, f"the shared row holds {held.shared}"
    w = held.dense["w"]
    assert ((least <= w) & (w <= most)).all(), f"w holds {w}, not {least} to {most}"


def _position(text: str) -> tuple[int, int] | None:
    """Process and steps of a position, beyond all for a trainer that has completed.

    None for one that had not joined, and for one that was lost: it may have sent some steps more.
    One that joins late, and whose data are dealt again, has the position of the cut before.
    """
    if text.startswith("{"):
        dealt = json.loads(text)["deal"]
        return _position(dealt["positions"][dealt["trainer"]])
    if text == "completed":
        return (1 << 19, 1 << 19)
    if text in ("", "lost"):
        return None
    process, _, steps = text.partition(":")
    return int(process), int(steps)


def _rows(steps: Iterable[Step]) -> set[int]:
    return {row_of(*step) for step in steps}
