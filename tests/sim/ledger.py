"""A model whose parameters count pushes, and what they must hold in the end.

SGD with rate 1 turns every push into a sum of whole numbers, which float32 holds exactly. Step s of
a trainer's process pushes `UNIT` to a row of its own, to a row that all share, and to every value
of the dense parameters. A lost push leaves its row at 0, a doubled one at twice its value.

In the modes that apply on arrival the row of an applied step holds `UNIT`. In Sync it holds
`UNIT` / (trainers that took part in the round). In Geo it holds `UNIT` / (trainers of the job)
after its first exchange, and `UNIT` once its trainer has flushed; `UNIT` can be divided so often
that all sums are whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from psrt.communicator.base import Gradients
from psrt.core import specs
from psrt.core.tensors import SelectedRows
from tests.support.communicators import plan_of

UNIT = 4 * 3**7
SHARED = 7
_TRAINER, _PROCESS = 1 << 40, 1 << 20

PLAN = plan_of(specs.Constant(0.0), rate=1.0)
WIDTH = PLAN.sparse[0].width
DENSE = {name: np.full(shape, -UNIT, np.float32) for name, shape in PLAN.dense_shapes.items()}


def row_of(trainer: int, process: int, step: int) -> int:
    """The row of one step: of `trainer`'s process number `process`, from 0."""
    return _TRAINER * (trainer + 1) + _PROCESS * process + step


def once_applied(mode: specs.CommunicationMode, trainers: int) -> set[float]:
    """The values that the row of a step may hold that was applied once, whole or in part."""
    if isinstance(mode, specs.Sync):
        return {UNIT / n for n in range(1, trainers + 1)}
    return {UNIT / trainers, float(UNIT)} if isinstance(mode, specs.Geo) else {float(UNIT)}


def step_of(row: int) -> tuple[int, int, int]:
    """Trainer, number of its process, and step of a row."""
    trainer, rest = divmod(row, _TRAINER)
    return trainer - 1, *divmod(rest, _PROCESS)


def described(row: int) -> str:
    return "trainer {}, process {}, step {}".format(*step_of(row))


def ids_of(trainer: int, process: int, step: int) -> np.ndarray:
    return np.array([SHARED, row_of(trainer, process, step)], np.int64)


def gradients_of(trainer: int, process: int, step: int) -> Gradients:
    values = np.full((2, WIDTH), -UNIT, np.float32)
    return {**DENSE, "emb": SelectedRows(ids_of(trainer, process, step), values, unique=True)}


@dataclass
class Ledger:
    """Steps that trainers pushed: `sent` ones may be applied, `acknowledged` ones must be."""

    trainers: int
    sent: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)

    def check(
        self,
        rows: Mapping[int, float],
        dense: Mapping[str, np.ndarray],
        mode: specs.CommunicationMode,
        is_even: bool = True,
    ) -> None:
        """Raise `AssertionError` unless rows and dense values are those of the steps sent.

        `rows` are the first weights by id. The rounds of all pservers had the same trainers if it
        `is_even`.
        """
        mean, once = isinstance(mode, specs.Sync), once_applied(mode, self.trainers)
        own = {row: value for row, value in rows.items() if row != SHARED}
        for row, value in sorted(own.items()):
            assert row in self.sent, f"{described(row)}: applied, but never sent"
            assert value in once, f"{described(row)}: {value / UNIT:g} times applied"
        for row in sorted(self.acknowledged - own.keys()):
            raise AssertionError(f"{described(row)}: acknowledged, but lost")
        for row in sorted(self.acknowledged & own.keys()):
            assert mean or own[row] == UNIT, f"{described(row)}: acknowledged, but lost in part"
        total = sum(own.values())
        if self.sent == self.acknowledged and is_even:
            self._check_sums(total, total, rows.get(SHARED, 0.0), dense)
        else:
            least = 0.0 if mean else float(UNIT * len(self.acknowledged))
            self._check_sums(least, UNIT * len(self.sent), rows.get(SHARED, 0.0), dense)

    def _check_sums(
        self, least: float, most: float, shared: float, dense: Mapping[str, np.ndarray]
    ) -> None:
        """A step without an answer may be applied on one pserver and not on the other."""
        assert least <= shared <= most, f"the shared row holds {shared}, not {least} to {most}"
        for name, values in dense.items():
            fits = ((least <= values) & (values <= most)).all()
            assert fits, f"{name} holds {values.reshape(-1)}, not {least} to {most}"
