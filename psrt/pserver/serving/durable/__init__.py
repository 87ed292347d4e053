"""The durable part of a pserver's state, while it serves.

In reading order:

    delta_writer  local cuts of a durable job, written now and then
    durability    what is durable, as replies name it
"""

from psrt.pserver.serving.durable.durability import Durability

__all__ = ["Durability"]
