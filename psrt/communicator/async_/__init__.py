"""Modes whose gradients are queued and merged in the background.

gradient_queue  gradients of one parameter, merged into groups as they arrive
merge_queue     the queues of all parameters: bounded, merged by sum or average
background      the threads of one communicator: started and ended together, one failure for all
sender          threads that take queued gradients and push them to the pservers
queued          base class: a step ends when its gradients are queued
rows_behind     rows that come with the answer of a push
async_          Async: pservers apply gradients on arrival, nobody waits for anybody
ssp             Ssp: async with a limit on how far ahead a trainer may run
"""

from psrt.communicator.async_.async_ import AsyncCommunicator
from psrt.communicator.async_.ssp import SspCommunicator

__all__ = ["AsyncCommunicator", "SspCommunicator"]
