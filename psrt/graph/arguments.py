"""Checks of layer arguments, which become plain Python values.

A program has a text form, so numbers of numpy become Python's before they enter it, and lists
become tuples. A layer function checks the arguments it computes with; `Layer.ops` checks every
attribute of an op by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from psrt.core.attributes import plain
from psrt.core.errors import ErrorCode, ProgramError
from psrt.graph.program import Var

_WHOLE = "axis bins depth groups k maxlen num_classes num_samples seed"
_WHOLES = "axes dilation ends expand_times padding perm shape size starts stride"
_NUMBERS = (
    "alpha beta bias delta epsilon factor margin max min momentum offset p pad_value power scale "
    "sigma slope temperature threshold value"
)
_FLAGS = (
    "by_column ceil_mode exclusive from_logits is_test keep_dims normalize remove_accidental_hits "
    "reverse soft_label transpose_x transpose_y use_global_stats"
)
_KINDS = {
    name: kind
    for kind, names in (
        ("whole", _WHOLE),
        ("wholes", _WHOLES),
        ("number", _NUMBERS),
        ("flag", _FLAGS),
    )
    for name in names.split()
}
"""The check of each attribute, a method below; inference rules check the others."""

_INT64 = range(-(1 << 63), 1 << 63)


class ArgumentChecks(ABC):
    """Checks by name of the argument; a failed one raises what `error` returns."""

    @abstractmethod
    def error(
        self, message: str, hint: str = "", code: ErrorCode = ErrorCode.PROGRAM_INVALID
    ) -> ProgramError:
        """Return the error to raise, with the layer and the user's line."""

    def whole(self, argument: str, given: Any, least: int | None = None) -> int:
        """Return a whole number, `least` or more."""
        value = plain(given)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"argument {argument} is {shown(given)}, not a whole number")
        if least is not None and value < least:
            raise self.error(f"argument {argument} is {value}, not {least} or more")
        if value not in _INT64:
            raise self.error(f"argument {argument} is {value}, beyond 64 bits")
        return value

    def wholes(self, argument: str, given: Any) -> tuple[int, ...]:
        """Return the whole numbers of any iterable."""
        if not are_several(given):
            raise self.error(f"argument {argument} is {shown(given)}, not a list of whole numbers")
        return tuple(self.whole(argument, item) for item in given)

    def number(self, argument: str, given: Any) -> float:
        """Return an int or a float, also an infinite one: a bound may be."""
        value = plain(given)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"argument {argument} is {shown(given)}, not a number")
        return value

    def flag(self, argument: str, given: Any) -> bool:
        """Return True or False; 1 and 0 are accepted."""
        value = plain(given)
        if not isinstance(value, int) or value not in (0, 1):
            raise self.error(f"argument {argument} is {shown(given)}, not True or False")
        return bool(value)

    def plain_attributes(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Return attributes of an op, each checked for its kind."""
        return {name: self._attribute(name, given) for name, given in attrs.items()}

    def _attribute(self, name: str, given: Any) -> Any:
        check = getattr(self, _KINDS[name]) if name in _KINDS else None
        return plain(given) if check is None else check(name, given)


def are_several(given: Any) -> bool:
    """Return whether a list or an array was given, not a single value or a text."""
    return isinstance(given, Iterable) and not isinstance(given, str)


def shown(given: Any) -> str:
    """Return an argument as messages show it."""
    return f"the var {given.name}" if isinstance(given, Var) else repr(given)
