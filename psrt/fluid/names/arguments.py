"""Arguments of a wrong type, which raise a `TypeError` as in Fluid."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.errors import ProgramError


class ArgumentTypeError(ProgramError, TypeError):
    """An argument of a type that the layer does not take."""


def check_name(layer: str, name: object) -> None:
    """Raise `ArgumentTypeError` unless `name` is a text."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"layers.{layer} was given the name {name!r}, which is no text.")


def check_shape(layer: str, shape: object) -> None:
    """Raise `ArgumentTypeError` unless `shape` is a list or tuple."""
    if not isinstance(shape, list | tuple):
        raise ArgumentTypeError(
            f"layers.{layer} was given the shape {shape!r}, which is no list or tuple.",
            hint="Give a list of sizes, such as [1].",
        )


def check_sizes(layer: str, shape: Any) -> None:
    """Raise `ArgumentTypeError` unless `shape` is a list or tuple of whole numbers."""
    check_shape(layer, shape)
    wrong = [size for size in shape if not isinstance(size, int | np.integer)]
    if wrong:
        raise ArgumentTypeError(
            f"layers.{layer} was given the size {wrong[0]!r} in shape {shape!r}, which is no whole "
            "number."
        )


def check_no_text(layer: str, argument: str, value: object, meant: str) -> None:
    """Raise `ArgumentTypeError` for a text, which another argument was `meant` to have."""
    if isinstance(value, str):
        raise ArgumentTypeError(
            f"layers.{layer} was given {argument}={value!r}, which is no True or False.",
            hint=f"Write {meant}={value!r}: {argument} comes before it.",
        )


__all__ = ["ArgumentTypeError", "check_name", "check_no_text", "check_shape", "check_sizes"]
