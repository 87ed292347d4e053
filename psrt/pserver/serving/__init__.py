"""The process and the rpc service of a pserver.

In reading order:

    id_list_cache      id lists that trainers have pulled and may push gradients of
    parts              requests, parsed and checked against the tables
    request_headers    fields of request headers, checked
    connections        the connections of each trainer's process
    updates            gradients into tables, and tables into replies
    effect_runner      executes instructions: lock, clock, deadlines, waiting calls
    state_pages        pages of trainer states as messages
    part_facts         the state of a pserver outside its tables
    resuming           the cut that a job goes on from
    cut_calls          the calls about cuts
    join_calls         a trainer joins the job, and its tables exist
    table_calls        pages of rows, and sweeps on request
    beginning          the state that a pserver begins with
    service            the rpc handler: one small function per method
    abandoned_sockets  removal of sockets that killed pservers left
    daemon             the pserver process: warm up, listen, report ready, serve, stop
    in_process         a pserver in the user's own process
"""

from psrt.pserver.serving import daemon
from psrt.pserver.serving.in_process import serve

__all__ = ["daemon", "serve"]
