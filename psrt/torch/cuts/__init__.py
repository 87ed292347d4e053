"""Cuts of torch jobs: the moments that they have, and how all ranks make one.

moments       the moment that a state_dict belongs to
run_position  the identity of a run, and where a trainer is in it
local_cuts    cuts of tables in this process
cut_making    a cut that all trainers make together
"""

from psrt.torch.cuts.cut_making import ATTEMPTS, make_cut
from psrt.torch.cuts.local_cuts import LocalTableCuts
from psrt.torch.cuts.moments import (
    HasMoment,
    OfMoment,
    State,
    check_fits,
    has_trained_before,
    moment,
)
from psrt.torch.cuts.run_position import RunPosition

__all__ = ["ATTEMPTS", "HasMoment", "LocalTableCuts", "OfMoment", "RunPosition", "State"]
__all__ += ["check_fits", "has_trained_before", "make_cut", "moment"]
