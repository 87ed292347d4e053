"""A trainer's part in cuts, besides its pushes.

scope_values   counters of metrics and running statistics in the scope
executor_cuts  the part of a user's own loop: its position, and cuts on request
leaving        the end of training by a signal: at a cut, if the job makes cuts
local_state    all parameters of a training without pservers, in a file
interruption   the last words of a trainer that a signal ended
"""

from psrt.trainer.cuts.executor_cuts import ExecutorCuts, Resumed, note_of
from psrt.trainer.cuts.interruption import Interruption
from psrt.trainer.cuts.leaving import CUT_S, Leaving
from psrt.trainer.cuts.local_state import LocalState
from psrt.trainer.cuts.scope_values import ScopeValues

__all__ = ["CUT_S", "ExecutorCuts", "Interruption", "Leaving", "LocalState", "Resumed"]
__all__ += ["ScopeValues", "note_of"]
