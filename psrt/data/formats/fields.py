"""The columns of a table that feed each slot, and their kinds.

A slot takes one column, by default that of its own name, or several, which are gathered into a
dense slot. Lines of `[data.columns]` in a job file, one per slot:

    click = "label"                                     a column by name or by number, from 0
    dense = { columns = ["I1", "I2"], scale = "log", missing = 0 }
    site  = { column = "site", kind = "text" }
    tags  = { column = 7, kind = "text", separator = "|" }
    rich  = { column = 14, values = { "<=50K" = 0, ">50K" = 1 } }

`kind`: float (slots of floats); id, an unsigned integer unchanged (slots of ids); text, a 63-bit
hash of its bytes; bucket, a hash of its logarithmic bucket, as in `psrt.data.convert.criteo`.
`salt` separates the hashes of a slot from those of others; `buckets = n` takes ids modulo n, into
0 … n − 1, so that a table of n rows has them all. `psrt.hash_ids` computes ids of texts. `scale =
"log"` is sign(x) · ln(1 + |x|). `values` maps texts to numbers: blanks around a text are ignored,
any other text is an error. `separator` cuts a cell into values. A missing value becomes `missing`
if that is given; otherwise text and bucket have an id for it, a ragged slot has no value, and any
other slot raises an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, cast

from psrt.core.errors import ConfigError, DataError
from psrt.data.checks import FLOAT32_MAX
from psrt.data.slots import Slot

Column: TypeAlias = "str | int"
KINDS = {"float": ("float",), "uint64": ("id", "text", "bucket")}
_SIGNED, _PATTERNS = 1 << 63, 1 << 64


@dataclass(frozen=True)
class Field:
    """One slot of a table; the module describes its parts."""

    slot: Slot
    columns: tuple[Column, ...]
    kind: str
    separator: str = ""
    scale: str = ""
    salt: int = 0
    missing: float | None = None
    buckets: int = 0
    values: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        kinds = KINDS[self.slot.dtype]
        if self.kind not in kinds:
            self._refuse("kind", self.kind, f"{' or '.join(kinds)} for a slot of {self.slot.dtype}")
        if self.scale not in ("", "log") or (self.scale and self.kind != "float"):
            self._refuse("scale", self.scale, 'nothing, or "log" for floats')
        if self.values is not None:
            self._check_values(self.values)
        if not isinstance(self.separator, str) or len(self.separator.encode()) > 1:
            self._refuse("separator", self.separator, "one ASCII character")
        if not _is_integer(self.salt, _SIGNED):
            self._refuse("salt", self.salt, "an integer of 64 bits with its sign")
        if type(self.buckets) is not int or not 0 <= self.buckets < _SIGNED:
            self._refuse("buckets", self.buckets, "a number of ids from 1 on")
        if self.buckets and self.kind == "float":
            self._refuse("buckets", self.buckets, "nothing: floats are no ids")
        if self.missing is not None:
            self._check_missing(self.missing)
        if len(self.columns) > 1 and self.slot.size != len(self.columns):
            wanted = f"1 for a ragged slot, 1 or {self.slot.size} for a dense one"
            self._refuse("columns", f"{len(self.columns)} columns", wanted)

    def _check_values(self, values: Any) -> None:
        legal = isinstance(values, Mapping) and values and self.kind == "float"
        if not legal or not all(type(t) is str and _is_float32(n) for t, n in values.items()):
            expected = "texts and their numbers, for floats, each within float32"
            self._refuse("values", values, expected)

    def _check_missing(self, missing: Any) -> None:
        if self.kind in ("text", "bucket"):
            self._refuse("missing", missing, "nothing: a missing text or bucket has an id")
        if self.kind == "id" and not _is_integer(missing, _PATTERNS):
            self._refuse("missing", missing, "an id, an integer of 64 bits")
        if self.kind == "float" and not _is_float32(missing):
            self._refuse("missing", missing, "a number within the range of float32")

    @property
    def missing_id(self) -> int:
        """`missing` of a slot of ids, as an int64 bit pattern."""
        number = int(self.missing or 0) % _PATTERNS
        return ((number % self.buckets if self.buckets else number) + _SIGNED) % _PATTERNS - _SIGNED

    def _refuse(self, key: str, value: object, expected: str) -> None:
        raise ConfigError(
            f"data.columns.{self.slot.name}: {key} is {value!r}, expected {expected}."
        )


def _is_integer(value: object, stop: int) -> bool:
    return type(value) is int and -_SIGNED <= value < stop


def _is_float32(value: object) -> bool:
    """Return whether a value is a number, no bool, that is finite as float32."""
    return type(value) in (int, float) and abs(cast("float", value)) <= FLOAT32_MAX


def check_unique(path: str, column: Column, names: Sequence[str], field: Field) -> None:
    """Raise `DataError` if several columns of a file have the name that a slot takes."""
    if list(names).count(str(column)) > 1:
        raise DataError(
            f"{path} has more than one column {column!r}, which slot {field.slot.name!r} takes.",
            hint="Give them names that differ, or the slot its column by number in [data.columns].",
        )


def check_cells(field: Field) -> None:
    """Raise `ConfigError` for a dense slot of several values in one cell without a separator."""
    if not field.separator and field.slot.size not in (None, len(field.columns)):
        raise ConfigError(
            f"data.columns.{field.slot.name}: expected {field.slot.size} columns, or one with a "
            f"separator, found {len(field.columns)}.",
            hint=f'Add {field.slot.name} = ["first", "second", …] to [data.columns], the names of '
            "its columns, or their numbers from 0.",
        )


def fields_of(slots: Sequence[Slot], columns: Mapping[str, Any] | None) -> tuple[Field, ...]:
    """Return a field per slot, from the entries of `[data.columns]`; raises `ConfigError`."""
    given = columns or {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"data.columns is {given!r}, expected a table.")
    names = [slot.name for slot in slots]
    for name in given:
        if name not in names:
            hint = f"The slots are {', '.join(names)}."
            raise ConfigError(
                f"data.columns names {name!r}, which is no slot of the job.", hint=hint
            )
    return tuple(_field(slot, given.get(slot.name, slot.name)) for slot in slots)


def _field(slot: Slot, given: Any) -> Field:
    if not isinstance(given, Mapping):
        given = {"columns" if isinstance(given, list) else "column": given}
    known = {"column", *(field.name for field in fields(Field))} - {"slot"}
    for key in given:
        if key not in known:
            raise ConfigError(
                f"data.columns.{slot.name}: unknown key {key!r}.",
                hint=f"Known: {', '.join(sorted(known))}.",
            )
    rest = {key: value for key, value in given.items() if key not in ("column", "columns")}
    kind = rest.pop("kind", KINDS[slot.dtype][0])
    return Field(slot, _columns(slot, given), kind, **rest)


def _columns(slot: Slot, given: Mapping[str, Any]) -> tuple[Column, ...]:
    many = given.get("columns", [given.get("column", slot.name)])
    legal = (
        isinstance(many, list | tuple) and many and not ("column" in given and "columns" in given)
    )
    if not legal or not all(isinstance(c, str | int) and not isinstance(c, bool) for c in many):
        raise ConfigError(
            f"data.columns.{slot.name}: expected column or columns, names or numbers from 0, "
            f"got {dict(given)!r}."
        )
    return tuple(many)
