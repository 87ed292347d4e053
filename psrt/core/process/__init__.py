"""Facts of this process, and stacks of processes.

control_group  limits of the control groups of this process
facts          release, clock and memory of this process
stacks         stacks of all threads, on request
standard_output lines that work can do without
user_frames    tracebacks that end at the user's line
"""

from psrt.core.process.control_group import group_cores, group_limit_bytes
from psrt.core.process.facts import memory_limit_bytes, process_facts
from psrt.core.process.stacks import processes_with_stacks, stacks_of, write_stacks_on_request
from psrt.core.process.standard_output import note
from psrt.core.process.user_frames import shorten_uncaught, shortened

__all__ = ["group_cores", "group_limit_bytes", "memory_limit_bytes", "process_facts"]
__all__ += ["note", "processes_with_stacks", "shorten_uncaught", "shortened", "stacks_of"]
__all__ += ["write_stacks_on_request"]
