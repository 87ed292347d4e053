"""Programs, names and scope of a test are its own; Fluid keeps one of each for the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import psrt.fluid as fluid


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield
