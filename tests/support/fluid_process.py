"""State that Fluid keeps once for a process, begun anew for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import psrt.fluid as fluid
from psrt.fluid import default_scope_funcs
from psrt.fluid.incubate.fleet import collective
from psrt.fluid.incubate.fleet.parameter_server import distribute_transpiler
from psrt.fluid.names import flags

FLEETS = (collective.fleet, distribute_transpiler.fleet)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs, names, scopes, flags and fleets of a test are its own, as if it ran alone.

    A test file outside the rooms of Fluid imports it.
    """
    for fleet in FLEETS:
        monkeypatch.setattr(fleet, "__dict__", dict(vars(type(fleet)())))
    monkeypatch.setattr(default_scope_funcs, "_scopes", [])
    monkeypatch.setattr(flags, "values", {})
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield
