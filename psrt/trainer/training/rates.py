"""Learning rates that the program computes: fetched in each step, sent with its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psrt.graph.program import Program


class ComputedRates:
    """The rates of a program by parameter; `vars` hold them."""

    def __init__(self, program: Program) -> None:
        self._rates = program.computed_rates()
        self.vars = list(dict.fromkeys(rate.var for rate in self._rates.values()))

    def of(self, values: Sequence[Any]) -> dict[str, float]:
        """Return the rates, from the values of `vars`, each that of the step or of each replica."""
        numbers = {
            var: float(np.ravel(value)[0]) for var, value in zip(self.vars, values, strict=True)
        }
        return {name: rate.scale * numbers[rate.var] for name, rate in self._rates.items()}
