"""The rpc service of a pserver.

In reading order:

    id_list_cache    id lists that trainers have pulled and may push gradients of
    part_tensors     tensors of a call, checked
    parts            requests, parsed and checked against the tables
    request_headers  fields of request headers, checked
    connections      the connections of each trainer's process
    kept_reads       what trainers of Sync compute a step on, for their successors
    updates          gradients into tables, and tables into replies
    unfinished_updates  errors of updates that ended early
    effect_runner    executes instructions: lock, clock, deadlines, waiting calls
    durable          the durable part of the state, as replies name it
    cuts             the calls about cuts, and cuts that a pserver makes by itself
    join_calls       a trainer joins the job, and its tables exist
    step_calls       the calls of a training step
    table_calls      pages of rows, and sweeps on request
    service          the rpc handler: calls by method, and the end of a job
"""

from psrt.pserver.serving.join_calls import Beginning
from psrt.pserver.serving.service import PserverService

__all__ = ["Beginning", "PserverService"]
