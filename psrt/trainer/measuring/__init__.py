"""Measures of a training. In reading order:

metrics   area under the ROC curve and mean loss, in constant memory
epoch_losses  the measures of one epoch, for callbacks
scored_rows  scored examples, for AUC by group and weight and functions of the user's
done_share  the share of a training that is done, by bytes of files
progress  progress lines and the summary of a run
evaluate  tests on held-back batches, forward only
curves    the course of a training as records, for files and for TensorBoard
"""

from psrt.trainer.measuring import curves, evaluate
from psrt.trainer.measuring.curves import Curves
from psrt.trainer.measuring.done_share import DoneShare
from psrt.trainer.measuring.epoch_losses import EpochLosses
from psrt.trainer.measuring.metrics import AucHistogram, Mean, Tally, number
from psrt.trainer.measuring.progress import Progress
from psrt.trainer.measuring.scored_rows import NEWEST, ScoredRows, grouped_auc

__all__ = [
    "NEWEST",
    "AucHistogram",
    "Curves",
    "DoneShare",
    "EpochLosses",
    "Mean",
    "Progress",
    "ScoredRows",
    "Tally",
    "curves",
    "evaluate",
    "grouped_auc",
    "number",
]
