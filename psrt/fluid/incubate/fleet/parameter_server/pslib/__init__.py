"""Fleet over PSLib: every name raises `ConfigError` at its first use."""

from __future__ import annotations

from typing import NoReturn

from psrt.fluid.names import refused


def __getattr__(name: str) -> NoReturn:
    raise refused(
        "fleet.parameter_server.pslib",
        name,
        "training by PSLib",
        "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler; "
        "psrt.tables, by ParamAttr(table=...), declares which rows a table admits and evicts.",
    )
