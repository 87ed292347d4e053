"""The process of a pserver, of its own or inside a user's.

In reading order:

    beginning          the state that a pserver begins with
    abandoned_sockets  removal of sockets that killed pservers left
    ending             the reason for a process to end, and signals
    health             a check that the process works, and its progress
    metered_calls      durations and refusals of calls
    observed           the metrics of a pserver
    one_run            refusal of trainers of another run of the job
    daemon             the pserver process: warm up, listen, report ready, serve, stop
    standby            a process that waits to take a killed pserver's place
    in_process         a pserver in the user's own process
"""

from psrt.pserver.process import daemon
from psrt.pserver.process.in_process import serve
from psrt.pserver.process.standby import wait_to_take_over

__all__ = ["daemon", "serve", "wait_to_take_over"]
