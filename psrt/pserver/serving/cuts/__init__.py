"""The calls about cuts, and the cuts that a pserver makes by itself.

In reading order:

    state_pages        pages of trainer states as messages
    resuming           the cut that a job goes on from
    cut_requests       requests to the first pserver of a job, and waits for a cut
    part_reports       reports of parts to the first pserver, and the end of their cut
    cut_calls          CUT, and the part of this pserver
    cut_moments        cuts on a signal, and before the end of the process
    end_cut            the cut at the end of the job
    resizes            changes of the number of trainers
    coordinator_calls  WATCH, PART and CHECKPOINT, at the first pserver
"""

from psrt.pserver.serving.cuts.coordinator_calls import CoordinatorCalls
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.cut_moments import CutMoments
from psrt.pserver.serving.cuts.end_cut import EndCut
from psrt.pserver.serving.cuts.resizes import Resizes

__all__ = ["CoordinatorCalls", "CutCalls", "CutMoments", "EndCut", "Resizes"]
