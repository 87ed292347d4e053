"""Training from Python in one call. In reading order:

local_executor  training without pservers, tables of any size included
feeds           arrays, files and other sources as batches of an epoch
kept_rows       rows of a cluster that has ended
fitted          the result: losses, predictions, rows, a saved model
one_call        `psrt.fit`
early_stopping  a callback of `psrt.fit` that ends a training
"""

from psrt.trainer.fitting.early_stopping import stop_early
from psrt.trainer.fitting.fitted import Fitted
from psrt.trainer.fitting.local_executor import LocalExecutor
from psrt.trainer.fitting.one_call import fit
from psrt.trainer.measuring import EpochLosses

__all__ = ["EpochLosses", "Fitted", "LocalExecutor", "fit", "stop_early"]
