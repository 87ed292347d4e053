"""Fleet over PSLib: not here, and said so at the first use of a name."""

from __future__ import annotations

from typing import NoReturn

from psrt.fluid.names import refused


def __getattr__(name: str) -> NoReturn:
    raise refused(
        "fleet.parameter_server.pslib",
        name,
        "training by PSLib",
        "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler; "
        "psrt.tables, by ParamAttr(table=...), says which rows a table admits and drops.",
    )
