"""The result of a job's `build()`: a program and the vars that training reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from psrt.core.errors import ProgramError
from psrt.graph.builder import current_builder
from psrt.graph.declaration import Declaration
from psrt.graph.program import Program, Var
from psrt.graph.verify import verify


@dataclass
class Model:
    """A program to train, made inside `with psrt.program():` after the last layer.

    `optimizer` minimizes `loss`, a scalar of shape (), and the program is verified. `prediction`
    (rows, 1) and `label` (rows, 1), given together or not at all, are what an AUC is computed from;
    `prediction_is` is "probability" or "logit". `metrics` are further scalars to report by name.
    Raises `ProgramError` for a program that is not legal.
    """

    loss: Var
    prediction: Var | None = None
    label: Var | None = None
    optimizer: Declaration | None = None
    prediction_is: Literal["probability", "logit"] = "probability"
    metrics: Mapping[str, Var] = field(default_factory=dict)
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        self.program = current_builder("Model").program
        if (self.prediction is None) != (self.label is None):
            raise ProgramError(
                "A Model was given only one of prediction and label.",
                hint="An AUC takes both; leave both out if there is none to compute.",
            )
        if self.optimizer is not None:
            self.optimizer.minimize(self.loss)
        verify(self.program)

    @property
    def feeds(self) -> list[Var]:
        """The data vars in order of declaration, the order of slots in a data file."""
        return self.program.data_vars()
