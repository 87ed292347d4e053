"""Programs, names and scope of a snippet are its own, as in a process that runs it alone."""

from __future__ import annotations

from tests.unit.fluid.conftest import fresh

__all__ = ["fresh"]
