"""inspect: files in reading order.

checking    All that is wrong with data files, not only the first line of it
statistics  What is in data files: values, ids and how unevenly they occur, slot by slot
skew_plot   A drawing of how unevenly ids occur: for each slot, occurrences over rank, both
            logarithmic
"""

from __future__ import annotations

from psrt.data.inspect import checking, statistics
from psrt.data.inspect.skew_plot import draw_skew
from psrt.data.inspect.statistics import IdCounts, SlotStatistics

__all__ = ["IdCounts", "SlotStatistics", "checking", "draw_skew", "statistics"]
