"""Fleet over PSLib: every name raises `ConfigError` at its first use."""

from __future__ import annotations

from psrt.fluid.names import refusing

__getattr__ = refusing(
    "fleet.parameter_server.pslib",
    "training by PSLib",
    "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler; "
    "psrt.tables, by ParamAttr(table=...), declares which rows a table admits and evicts.",
)
