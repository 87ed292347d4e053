"""The rpc service of a pserver.

In reading order:

    id_list_cache    id lists that trainers have pulled and may push gradients of
    parts            requests, parsed and checked against the tables
    request_headers  fields of request headers, checked
    connections      the connections of each trainer's process
    kept_reads       what trainers of Sync compute a step on, for their successors
    updates          gradients into tables, and tables into replies
    unfinished_updates  errors of updates that ended early
    effect_runner    executes instructions: lock, clock, deadlines, waiting calls
    state_pages      pages of trainer states as messages
    resuming         the cut that a job goes on from
    durable          the durable part of the state, as replies name it
    cut_calls        the calls about cuts
    join_calls       a trainer joins the job, and its tables exist
    step_calls       the calls of a training step
    table_calls      pages of rows, and sweeps on request
    cut_requests     requests of a pserver for a cut
    cut_moments      cuts on a signal, and before the end of the process
    end_cut          the cut at the end of the job
    resizes          changes of the number of trainers
    coordinator_calls  the calls to the coordinator of cuts
    service          the rpc handler: calls by method, and the end of a job
"""

from psrt.pserver.serving.join_calls import Beginning
from psrt.pserver.serving.service import PserverService

__all__ = ["Beginning", "PserverService"]
