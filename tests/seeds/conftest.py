"""What Fluid keeps once a process is a snippet's own, as in a process that runs it alone."""

from __future__ import annotations

from tests.support.fluid_process import fresh

__all__ = ["fresh"]
