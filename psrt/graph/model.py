"""The result of a job's `build()`: a program and the vars that training reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from psrt.core.errors import ProgramError
from psrt.graph.builder import current_builder
from psrt.graph.declaration import Declaration
from psrt.graph.names import user_line
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
        self._check_vars()
        if self.optimizer is not None:
            self._check_optimizer()
            self.optimizer.minimize(self.loss)
        verify(self.program)

    def _check_vars(self) -> None:
        given = {"loss": self.loss, "prediction": self.prediction, "label": self.label}
        metrics = {f"metrics[{name!r}]": var for name, var in self.metrics.items()}
        for name, var in (given | metrics).items():
            if not isinstance(var, Var) and (var is not None or name == "loss"):
                raise ProgramError(
                    f"psrt.Model at {user_line()} was given {var!r} as {name}, which is no var.",
                    hint="Give what a layer returned, such as loss=layers.mean(…).",
                )
        for name, var in metrics.items():
            if var.shape != ():
                raise ProgramError(
                    f"psrt.Model at {user_line()}: {name} has shape {var.shape}, not ().",
                    hint="Reduce it with layers.mean; a metric is one number for a batch.",
                )

    def _check_optimizer(self) -> None:
        if not isinstance(self.optimizer, Declaration):
            name = getattr(self.optimizer, "__name__", "Adam")
            raise ProgramError(
                f"psrt.Model at {user_line()} was given {self.optimizer!r} as optimizer.",
                hint=f"Give what a call returns: optimizer=psrt.optimizer.{name}(learning_rate=…).",
            )

    @property
    def feeds(self) -> list[Var]:
        """The data vars in order of declaration, the order of slots in a data file."""
        return self.program.data_vars()
