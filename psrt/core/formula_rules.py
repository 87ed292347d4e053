"""Which numbers of optimizers, initializers and regularizers their formulas can take.

Pservers refuse others when a table is registered, and a job file that says them is not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from psrt.core.specs import Optimizer

_SHARES = ("beta1", "beta2", "rho", "decay", "momentum")
_NOT_NEGATIVE = ("epsilon", "initial_accumulator", "l1", "l2")


def number_problems(what: str, value: Any, kinds: Any) -> Iterator[str]:
    """What is wrong with a value that should be one of `kinds` and hold finite numbers alone, in
    words that follow "cannot be registered:"."""
    if not isinstance(value, kinds):
        yield f"{value!r} is no {what}"
        return
    for name, number in vars(value).items():
        if not isinstance(number, int | float) or not math.isfinite(number):
            yield f"{name} of its {what} is {number!r}, not a finite number"


def optimizer_problems(optimizer: Any) -> Iterator[str]:
    """The same of an optimizer, and which of its numbers would break its formula."""
    yield from number_problems("optimizer", optimizer, Optimizer)
    numbers = vars(optimizer) if isinstance(optimizer, Optimizer) else {}
    for name in _SHARES:
        if not 0 <= numbers.get(name, 0) < 1:
            yield f"{name} of its optimizer is {numbers[name]}, not in [0, 1)"
    for name in _NOT_NEGATIVE:
        if numbers.get(name, 0) < 0:
            yield f"{name} of its optimizer is {numbers[name]}, below 0"
    if numbers.get("lr_power", 0) > 0:
        yield f"lr_power of its optimizer is {numbers['lr_power']}, above 0"
    if numbers.get("initial_g2sum", 1) <= 0:
        yield f"initial_g2sum of its optimizer is {numbers['initial_g2sum']}, not above 0"
    if numbers.get("weight_min", 0) > numbers.get("weight_max", 0):
        yield (
            f"weights of its optimizer lie between {numbers['weight_min']} and "
            f"{numbers['weight_max']}, which is nowhere"
        )
