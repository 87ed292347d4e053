"""serving: files in reading order.

id_lists       Lists of ids that trainers have pulled and may push gradients of: remembered,
               grouped by stripe
parts          Requests taken apart and checked against the tables, before anything is admitted
               or changed
presence       Who still holds a connection: a process that is only silent may compute or read
               for long
updates        Admitted gradients into tables, and tables into replies
effect_runner  Does what the machine decides: its lock, its clock, its deadlines, the waiting
               calls
service        The rpc handler of a pserver: one small function per method, over tables and
               machine
daemon         The pserver process: warm up, open the doors, say so, serve until the job ends
               or a signal
in_process     A pserver in the user's own process, for scripts of which one copy is a pserver
"""

from __future__ import annotations

from psrt.pserver.serving import daemon
from psrt.pserver.serving.in_process import serve

__all__ = ["daemon", "serve"]
