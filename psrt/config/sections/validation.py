"""The section `[validation]`: tests while training goes on."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.settings import setting


@dataclass(frozen=True)
class ValidationConfig:
    """Tests of trainer 0 on the `validation` files of `[data]`, and what follows from them."""

    every_steps: int = setting(
        0, "Steps of trainer 0 between two validations; 0 = one after each epoch.", minimum=0
    )
    metric: str = setting(
        "",
        "Value that is compared: loss, auc, or a metric of the model; empty = auc if the model "
        "has a prediction, otherwise loss.",
    )
    better: str = setting(
        "",
        "Direction in which the metric improves; empty = lower for loss, otherwise higher.",
        choices=("", "higher", "lower"),
    )
    min_delta: float = setting(0.0, "Least change that counts as an improvement.", minimum=0.0)
    patience: int = setting(
        0,
        "Validations in a row without an improvement after which all trainers end; 0 = they "
        "train to the end.",
        minimum=0,
    )
    keep_best: bool = setting(
        False, "Have --save keep the model of the best validation in place of the last one."
    )
