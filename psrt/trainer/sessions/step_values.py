"""Values of a job's training that outlive a step: vars of its scope, and sums of the running epoch.

They are copied after each step of a job that makes cuts: a cut may come while the next step runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psrt.communicator.base import Beginning
from psrt.core.types import Array
from psrt.trainer.cuts import ScopeValues
from psrt.trainer.inputs import Kept, Outputs, kept_of, plain_of
from psrt.trainer.measuring import Progress, Tally

_TALLY, _EPOCH = "tally ", "epoch"


class StepValues:
    """The values of a job's training: `after` each step, and `restore` at the start."""

    def __init__(self, vars: ScopeValues, progress: Progress, outputs: Outputs) -> None:
        self._vars, self._progress, self._outputs = vars, progress, outputs

    def after(self, epoch: int, examples: int, fetched: list[Any]) -> Kept:
        """The values after a step that fetched `fetched`, before `Progress` has counted it."""
        arrays, tally = self._vars.arrays(), self._progress.tally_before(epoch)

        def plain() -> dict[str, Any]:
            if fetched:  # else the step was left out
                tally.update(self._outputs.read(fetched), examples)
            sums = {_TALLY + name: values for name, values in tally.arrays().items()}
            return plain_of({**arrays, **sums, _EPOCH: np.array([epoch])})

        return plain

    def restore_of(self, trainer: int, found: Beginning) -> Kept:
        """Go on from the values of a cut that the job began with; returns them, for cuts.

        If the data are dealt again, they are those of the former trainer of the same number, and
        the sums of the running epoch begin anew.
        """
        if not found.positions:
            return self.restore(found.position)
        former = found.positions[trainer] if trainer < len(found.positions) else ""
        return self._go_on({n: v for n, v in kept_of(former).items() if not _is_sum(n)})

    def restore(self, position: str) -> Kept:
        """Go on from the values in the position of a cut, if it has some; returns them."""
        return self._go_on(kept_of(position))

    def _go_on(self, kept: Mapping[str, Array]) -> Kept:
        self._vars.restore(kept)
        if _EPOCH in kept:
            sums = {name.removeprefix(_TALLY): values for name, values in kept.items()}
            self._progress.go_on(int(kept[_EPOCH][0]), Tally.of(sums))
        return lambda: plain_of(kept)


def _is_sum(name: str) -> bool:
    return name == _EPOCH or name.startswith(_TALLY)
