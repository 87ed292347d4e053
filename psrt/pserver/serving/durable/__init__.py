"""The durable part of a pserver's state, while it serves.

In reading order:

    part_facts    the state of a pserver outside its tables
    delta_writer  local cuts of a durable job, written now and then
    durability    what is durable, as replies name it
    part_source   ticks of a part, for its backup
"""

from psrt.pserver.serving.durable.durability import Durability
from psrt.pserver.serving.durable.part_facts import part_facts
from psrt.pserver.serving.durable.part_source import PartSource

__all__ = ["Durability", "PartSource", "part_facts"]
