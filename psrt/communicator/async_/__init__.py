"""async_: files in reading order.

gradient_queue  Gradients of one parameter that wait to be pushed, merged into groups as they
                arrive
merge_queue     Gradients that wait to be pushed: bounded per parameter, merged by sum or
                average
background      The background threads of one communicator: begun and ended together, one
                failure for all
sender          What takes queued gradients and pushes them to the pservers: one thread or
                several
dense_pulls     Whole dense parameters on their way from the pservers to the training thread
queued          Modes whose gradients leave by queues, while the trainer goes on: Async and Ssp
async_          Async: gradients are applied on arrival, nobody waits for anybody
ssp             Ssp: stale synchronous parallel, async with a limit on how far ahead a trainer
                may run
"""

from __future__ import annotations

from psrt.communicator.async_.async_ import FreePulls, queue_of
from psrt.communicator.async_.queued import Queued
from psrt.communicator.async_.ssp import GatedPulls, queue_of_ssp

__all__ = ["FreePulls", "GatedPulls", "Queued", "queue_of", "queue_of_ssp"]
