"""Precision of gradients and parameters on the wire; tables and arithmetic are always float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from psrt.core.errors import ConfigError

NUMBER_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}
"""Bytes of one number by precision; int8 also has scales (`psrt.kernels.precision.narrow`)."""

PRECISIONS = tuple(NUMBER_BYTES)


@dataclass(frozen=True)
class WirePrecision:
    """`tables` maps names of dense parameters and sparse tables to precisions; others: `default`.

    A setting of one trainer: each request names the precision of its reply.
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
        """True if any tensor travels in less than 32 bits."""
        return any(precision != "float32" for precision in (self.default, *self.tables.values()))

    def only_dense(self, tables: Sequence[str]) -> WirePrecision:
        """A copy with rows of these sparse tables in float32.

        Raises `ConfigError` for one of them that is set to another precision.
        """
        for name in tables:
            if self.tables.get(name, "float32") != "float32":
                raise ConfigError(
                    f"rows of table {name} cannot travel as {self.tables[name]} in mode geo, where "
                    "what a change loses would never come back.",
                    hint="Name dense parameters in wire_tables, or take another mode.",
                )
        return WirePrecision(self.default, {**self.tables, **dict.fromkeys(tables, "float32")})

    def of(self, name: str) -> str:
        """The precision of a dense parameter or a sparse table by name."""
        return self.tables.get(name, self.default)
