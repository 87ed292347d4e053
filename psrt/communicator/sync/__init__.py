"""Modes whose step is one call.

repeated_step  steps numbered over all processes of a trainer
stepwise       base class: gradients go up and parameters come back in one call
sync           Sync: one exchange per trainer, pserver and round
half_async     HalfAsync: the replicas of one trainer wait for each other, trainers never do
"""

from psrt.communicator.sync.half_async import HalfAsyncCommunicator
from psrt.communicator.sync.sync import SyncCommunicator

__all__ = ["HalfAsyncCommunicator", "SyncCommunicator"]
