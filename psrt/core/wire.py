"""In which precision gradients and parameters travel; tables and arithmetic are float32 anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from psrt.core.errors import ConfigError

PRECISIONS = ("float32", "float16", "bfloat16", "int8")


@dataclass(frozen=True)
class Wire:
    """`tables` says it for dense parameters and sparse tables by name, `default` for all others.

    A matter of one trainer: pservers answer each request as it asks.
    """

    default: str = "float32"
    tables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, precision in {"the default": self.default, **self.tables}.items():
            if precision not in PRECISIONS:
                raise ConfigError(
                    f"the wire precision of {name} is {precision!r}, expected one of "
                    f"{', '.join(PRECISIONS)}."
                )

    @property
    def narrows(self) -> bool:
        """Whether anything travels in less than 32 bits."""
        return any(precision != "float32" for precision in (self.default, *self.tables.values()))

    def only_dense(self, tables: Sequence[str]) -> Wire:
        """The same, with rows of these sparse tables in float32; refused if it says otherwise."""
        for name in tables:
            if self.tables.get(name, "float32") != "float32":
                raise ConfigError(
                    f"rows of table {name} cannot travel as {self.tables[name]} in mode geo, where "
                    "what a change loses would never come back.",
                    hint="Name dense parameters in wire_tables, or take another mode.",
                )
        return Wire(self.default, {**self.tables, **dict.fromkeys(tables, "float32")})

    def of(self, name: str) -> str:
        """The precision of a dense parameter or a sparse table."""
        return self.tables.get(name, self.default)
