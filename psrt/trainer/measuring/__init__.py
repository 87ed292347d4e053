"""Measures of a training. In reading order:

metrics   area under the ROC curve and mean loss, in constant memory
done_share  the share of a training that is done, by bytes of files
progress  progress lines and the summary of a run
evaluate  tests on held-back batches, forward only
curves    the course of a training as records, for files and for TensorBoard
"""

from psrt.trainer.measuring import curves, evaluate
from psrt.trainer.measuring.curves import Curves
from psrt.trainer.measuring.done_share import DoneShare
from psrt.trainer.measuring.metrics import AucHistogram, Mean, Tally, number
from psrt.trainer.measuring.progress import Progress

__all__ = [
    "AucHistogram",
    "Curves",
    "DoneShare",
    "Mean",
    "Progress",
    "Tally",
    "curves",
    "evaluate",
    "number",
]
