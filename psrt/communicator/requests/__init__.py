"""Requests of one trainer to pservers, and their replies.

known_ids         lists of ids that pservers remember, so that a push need not repeat them
requests          one request: its parts, their tensors, the destinations of its reply
lineage           steps over all processes of a trainer, and what pservers have of them
residuals         error feedback: rounding errors of narrow gradients go into the next one
router            gradients to parts per pserver, replies to arrays
snapshots         buffers that receive whole dense parameters
endpoint_threads  threads for the calls to each pserver
copies            copies of arrays, in memory that is used again
retained          pushes kept until a cut has them
failover          a pserver that has ended is deposed, and its backup used
kept_calls        meetings and first values, which a recovered pserver gets again
ping_times        when idle pservers are called
recovery          a recovered pserver is sent its pushes again
asked_cut         a cut that a trainer asks for
joining           a trainer joins its job
job_calls         calls about the job: meet, take part in cuts, complete
state_calls       trainer states to a cut and from one, page by page
pserver_group     calls to all pservers of a plan
cut_watch         the part of a trainer in cuts
"""

from psrt.communicator.requests.copies import Copies
from psrt.communicator.requests.cut_watch import CutWatch, log_given_up, take_part
from psrt.communicator.requests.endpoint_threads import BACKSTOP_S, EndpointThreads, results
from psrt.communicator.requests.kept_calls import KeptCalls
from psrt.communicator.requests.lineage import WHOLE, Lineage, Settled, Steps
from psrt.communicator.requests.pserver_group import PendingCalls, PserverGroup
from psrt.communicator.requests.requests import Request, count_steps
from psrt.communicator.requests.retained import RetainedPushes
from psrt.communicator.requests.router import Router
from psrt.communicator.requests.snapshots import Snapshots, empty_dense
from psrt.communicator.requests.state_calls import StatePage

__all__ = ["BACKSTOP_S", "CutWatch", "EndpointThreads", "PendingCalls", "PserverGroup", "results"]
__all__ += ["WHOLE", "Copies", "KeptCalls", "Lineage", "Settled", "Steps"]
__all__ += [
    "Request",
    "RetainedPushes",
    "Router",
    "Snapshots",
    "StatePage",
    "count_steps",
    "empty_dense",
    "log_given_up",
    "take_part",
]
