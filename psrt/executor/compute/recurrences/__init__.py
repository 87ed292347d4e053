"""Recurrences over the elements of each example: files in reading order.

steps  the elements of a batch in steps of a recurrence: first all first ones, then all second ones
lstm   long short-term memory
gru    gated recurrent units
"""

from psrt.executor.compute.recurrences import gru, lstm
from psrt.executor.compute.recurrences.steps import RecurrentStep, steps_of

__all__ = ["RecurrentStep", "gru", "lstm", "steps_of"]
