"""Rows that are dropped: by age, value or memory, and at the request of a trainer.

In reading order:

    policies  policies and the schedule of sweeps that drop rows
    sweeping  sweeps over all rows of a table, in small slices
    upkeep    sweeps that keep tables within their limits, and shrinks on request
"""

from psrt.pserver.eviction.upkeep import Upkeep

__all__ = ["Upkeep"]
