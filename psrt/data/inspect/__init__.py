"""Checks and statistics of files: files in reading order.

checking    All errors of data files, not only the first
statistics  Values, ids and their skew, slot by slot
skew_plot   A drawing of the skew of ids: occurrences over rank, both logarithmic
"""

from psrt.data.inspect import checking, statistics
from psrt.data.inspect.skew_plot import draw_skew
from psrt.data.inspect.statistics import IdCounts, SlotStatistics

__all__ = ["IdCounts", "SlotStatistics", "checking", "draw_skew", "statistics"]
