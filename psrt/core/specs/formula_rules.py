"""Legal numbers of optimizers, initializers and regularizers.

Other numbers raise an error where a program declares them (`check_formula`), when a job file is
read, and when a pserver registers a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.specs.optimizers import Optimizer

FLOAT32_MAX = float.fromhex("0x1.fffffep127")
"""Largest float32, the type of weights and their state: larger numbers would become infinite."""

_SHARES = ("beta1", "beta2", "rho", "decay", "momentum")
_NOT_NEGATIVE = ("epsilon", "initial_accumulator", "l1", "l2", "std")
_BOUNDS = (("weight_min", "weight_max", "weights"), ("low", "high", "first values"))


def is_float32(value: object) -> bool:
    """True if `value` is a number in the range of float32; NaN and infinity are not."""
    return isinstance(value, int | float) and abs(value) <= FLOAT32_MAX


def formula_problems(what: str, value: Any, kinds: Any, of: str = "") -> Iterator[str]:
    """Yield the problems of a value that should be one of `kinds` with legal numbers; `of` follows
    the name of a number in the text."""
    if not isinstance(value, kinds):
        yield f"{value!r} is no {what}"
        return
    numbers = vars(value)
    bad = [name for name, number in numbers.items() if not is_float32(number)]
    for name in bad:
        yield f"{name}{of} is {numbers[name]!r}, not a finite number of float32"
    if not bad:
        yield from _range_problems(numbers, of)


def number_problems(what: str, value: Any, kinds: Any) -> Iterator[str]:
    """Yield `formula_problems` in words that follow "cannot be registered:"."""
    return formula_problems(what, value, kinds, f" of its {what}")


def optimizer_problems(optimizer: Any) -> Iterator[str]:
    """Yield `number_problems` of an optimizer."""
    return number_problems("optimizer", optimizer, Optimizer)


def check_formula(what: str, value: Any, kinds: Any) -> None:
    """Raise `ConfigError` for a value that pservers would refuse."""
    problem = next(formula_problems(what, value, kinds), "")
    if problem:
        raise ConfigError(
            f"{what} {value!r} is not usable: {problem}.",
            hint=f"Correct the {what} where it is declared.",
        )


def _range_problems(numbers: dict[str, Any], of: str) -> Iterator[str]:
    """Yield finite numbers that are outside of the range of their formula."""
    for name in _SHARES:
        if not 0 <= numbers.get(name, 0) < 1:
            yield f"{name}{of} is {numbers[name]}, not in [0, 1)"
    for name in _NOT_NEGATIVE:
        if numbers.get(name, 0) < 0:
            yield f"{name}{of} is {numbers[name]}, below 0"
    if numbers.get("lr_power", 0) > 0:
        yield f"lr_power{of} is {numbers['lr_power']}, above 0"
    if numbers.get("initial_g2sum", 1) <= 0:
        yield f"initial_g2sum{of} is {numbers['initial_g2sum']}, not above 0"
    for low, high, lie in _BOUNDS:
        if numbers.get(low, 0) > numbers.get(high, 0):
            yield f"{lie}{of} lie between {numbers[low]} and {numbers[high]}, which is nowhere"
