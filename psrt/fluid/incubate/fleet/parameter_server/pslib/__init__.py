"""Fleet over PSLib: names that can be imported, and raise `ConfigError` when used."""

from __future__ import annotations

from psrt.fluid.names import RefusingFleet, refusing, refusing_class

_ROOM = "fleet.parameter_server.pslib"
_WHAT = "training by PSLib"
_HINT = (
    "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler; "
    "psrt.tables, by ParamAttr(table=...), declares which rows a table admits and evicts."
)

fleet = RefusingFleet(_ROOM, _WHAT, _HINT)
PSLib = refusing_class(_ROOM, "PSLib", _WHAT, _HINT)

__getattr__ = refusing(_ROOM, _WHAT, _HINT)
