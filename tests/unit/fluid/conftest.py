"""Programs, names, scope and fleets of a test are its own; Fluid keeps one of each a process."""

from __future__ import annotations

from tests.support.fluid_process import fresh

__all__ = ["fresh"]
