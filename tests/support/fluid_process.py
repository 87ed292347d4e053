"""State that Fluid keeps once for a process, begun anew for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import psrt.fluid as fluid
from psrt.fluid.incubate.fleet import collective
from psrt.fluid.incubate.fleet.parameter_server import distribute_transpiler

FLEETS = (collective.fleet, distribute_transpiler.fleet)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs, names, scope and fleets of a test are its own, as in a process that runs it alone.

    A test file outside the rooms of Fluid imports it.
    """
    for fleet in FLEETS:
        monkeypatch.setattr(fleet, "__dict__", dict(vars(type(fleet)())))
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield
