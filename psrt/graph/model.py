"""The result of a job's `build()`: a program and the vars that training reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from psrt.core.errors import ProgramError
from psrt.core.types import F32
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
    `group` (rows, 1), such as a user's id, makes `gauc`, the AUC within groups; `weight` (rows, 1)
    float makes `weighted_auc`. `functions` are measures by name, each called with the predictions
    (n,) and labels (n,) of all examples of a test, float32; it returns a number. They take a
    prediction and a label.
    Raises `ProgramError` for a program that is not legal.
    """

    loss: Var
    prediction: Var | None = None
    label: Var | None = None
    optimizer: Declaration | None = None
    prediction_is: Literal["probability", "logit"] = "probability"
    metrics: Mapping[str, Var] = field(default_factory=dict)
    group: Var | None = None
    weight: Var | None = None
    functions: Mapping[str, Callable[[F32, F32], float]] = field(default_factory=dict)
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        self.program = current_builder("Model").program
        if (self.prediction is None) != (self.label is None):
            raise ProgramError(
                "A Model was given only one of prediction and label.",
                hint="An AUC takes both; leave both out if there is none to compute.",
            )
        self._check_vars()
        self._check_measures()
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

    def _check_measures(self) -> None:
        given = {"group": self.group, "weight": self.weight}
        for name, var in given.items():
            if var is not None and (not isinstance(var, Var) or var.shape[1:] != (1,)):
                raise ProgramError(
                    f"psrt.Model at {user_line()} was given {var!r} as {name}.",
                    hint=f'Give a var with one value an example: layers.data("{name}", (1,), …).',
                )
        measured = [*self.measured]
        if measured and self.prediction is None:
            raise ProgramError(
                f"psrt.Model at {user_line()} is to measure {', '.join(measured)}, but has no "
                "prediction.",
                hint="Give it a prediction and a label.",
            )
        taken = {"loss", "auc", *self.metrics, "gauc", "weighted_auc"} & set(self.functions)
        if taken or not all(map(callable, self.functions.values())):
            raise ProgramError(
                f"psrt.Model at {user_line()} was given functions={dict(self.functions)!r}: "
                + (f"{', '.join(sorted(taken))} is taken." if taken else "one cannot be called."),
                hint="Give functions of (predictions, labels) under names of their own.",
            )

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of what is measured beside loss, AUC and `metrics`."""
        groups = ("gauc",) if self.group is not None else ()
        weights = ("weighted_auc",) if self.weight is not None else ()
        return (*groups, *weights, *self.functions)

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
