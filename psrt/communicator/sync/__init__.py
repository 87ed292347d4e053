"""sync: files in reading order.

stepwise           Modes whose step is one call: gradients go up and, in the same call,
                   parameters come down
sync               Sync: one exchange per trainer, pserver and round
half_async         HalfAsync: the replicas of one trainer wait for each other, trainers never do
"""

from __future__ import annotations

from psrt.communicator.sync.half_async import Arrivals
from psrt.communicator.sync.stepwise import StepByStep
from psrt.communicator.sync.sync import SyncTurns

__all__ = ["Arrivals", "StepByStep", "SyncTurns"]
