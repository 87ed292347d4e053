"""Measures of a training. In reading order:

metrics   area under the ROC curve and mean loss, in constant memory
progress  progress lines and the summary of a run
evaluate  tests on held-back batches, forward only
"""

from psrt.trainer.measuring import evaluate
from psrt.trainer.measuring.metrics import AucHistogram, Mean, Tally, number
from psrt.trainer.measuring.progress import Progress

__all__ = ["AucHistogram", "Mean", "Progress", "Tally", "evaluate", "number"]
