"""Recurrences over the elements of each example: files in reading order.

steps  the elements of a batch in steps of a recurrence: first all first ones, then all second ones
lstm   long short-term memory
gru    gated recurrent units
chains  the probability of a chain of tags, and the most probable one
"""

from psrt.executor.compute.recurrences import chains, gru, lstm
from psrt.executor.compute.recurrences.steps import RecurrentStep, steps_of

__all__ = ["RecurrentStep", "chains", "gru", "lstm", "steps_of"]
