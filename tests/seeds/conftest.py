"""Programs, names, scope and fleets of a snippet, as in a process that runs it alone."""

from __future__ import annotations

from tests.support.fluid_process import fresh

__all__ = ["fresh"]
