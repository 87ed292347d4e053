"""This process and its limits. In reading order:

control_group  limits of the control groups of this process
facts          release, clock and memory of this process
stacks         stacks of all threads, on request
"""

from psrt.core.process import stacks
from psrt.core.process.control_group import group_cores, group_limit_bytes
from psrt.core.process.facts import memory_limit_bytes, process_facts
from psrt.core.process.stacks import write_stacks_on_request

__all__ = ["group_cores", "group_limit_bytes", "memory_limit_bytes", "process_facts", "stacks"]
__all__ += ["write_stacks_on_request"]
