"""What a job's `build()` returns: a program and the vars of it that training looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from psrt.core.errors import ProgramError
from psrt.graph.builder import current_builder
from psrt.graph.optimizer import Declaration
from psrt.graph.program import Program, Var
from psrt.graph.verify import verify


@dataclass
class Model:
    """Made inside `with psrt.program():` after the last layer.

    `optimizer` is told to minimize `loss`, and the program is verified. `prediction` (rows, 1) and
    `label` (rows, 1) are what an AUC is computed from; `prediction_is` says whether the prediction
    is a probability or a logit. `metrics` are further scalars to report by name.
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
        """The data vars in the order of declaration, which is the order of slots in a data file."""
        return self.program.data_vars()
