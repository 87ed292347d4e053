"""Cuts on disk: the part of this pserver, the manifest of all parts, and tables restored from them.

In reading order:

    cut_files      names and contents of the files of a cut
    trainer_states  pages that Geo trainers send, to files of a part
    part_writer    frozen tables to files
    part_pace      the rate at which frozen tables are written
    saved_cut      a complete cut: its manifest, and the pages of its tables
    late_states    states of trainers that have not joined, from one cut to the next
    merging        a table merged from its full freeze and the deltas behind it
    compaction     a cut that builds on others made full
    term_file      the process that coordinates the cuts in a directory
    local_cut      what changed at one pserver since its last local cut
    delta_files    local cuts as files
    delta_schedule the times of local cuts, and when one is full
    served_job     tables that a killed pserver recovers
    stored_cuts    all cuts in a directory, complete or not: their files, bases and removal
    cut_history    the ends of the cuts of this pserver, for STATUS
    cutting        freezes and writes this pserver's part of a cut
    waiting_caller a call that waits for a cut
    coordinated_cuts  the directory in the hands of the coordinator: term, manifests, old cuts
    coordination   the coordinator of a job in its first pserver: calls and timer
"""

from psrt.pserver.checkpoints import delta_files, served_job, term_file
from psrt.pserver.checkpoints.compaction import compact
from psrt.pserver.checkpoints.coordination import Coordination
from psrt.pserver.checkpoints.cut_history import CutHistory
from psrt.pserver.checkpoints.cutting import Cutting, Settings
from psrt.pserver.checkpoints.delta_schedule import DeltaSchedule
from psrt.pserver.checkpoints.late_states import LateStates
from psrt.pserver.checkpoints.local_cut import LocalCut, LocalCuts
from psrt.pserver.checkpoints.part_pace import PartPaces
from psrt.pserver.checkpoints.part_writer import write_part
from psrt.pserver.checkpoints.saved_cut import (
    SavedCut,
    StoredPages,
    StoredTable,
    complete_cuts,
    find_cut,
)
from psrt.pserver.checkpoints.served_job import RecoveredPart
from psrt.pserver.checkpoints.stored_cuts import Bases, files_by_cut, remove_cut
from psrt.pserver.checkpoints.trainer_states import SentPage
from psrt.pserver.checkpoints.waiting_caller import WaitingCaller

__all__ = ["Bases", "Coordination", "Cutting", "RecoveredPart", "SavedCut", "SentPage", "Settings"]
__all__ += [
    "StoredPages",
    "StoredTable",
    "WaitingCaller",
    "compact",
    "complete_cuts",
    "files_by_cut",
    "find_cut",
]
__all__ += ["DeltaSchedule", "LocalCut", "LocalCuts", "delta_files", "remove_cut", "served_job"]
__all__ += ["CutHistory", "LateStates", "PartPaces", "term_file", "write_part"]
