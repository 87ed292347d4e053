"""Saving and restoring of what torch has beside the tables.

checkpointer   a cut, with all that torch has beside it
dealt_batches  batches of a data set for any number of ranks
resumable      the position of a loader as of the last trained batch
"""

from psrt.torch.saving.checkpointer import Checkpointer
from psrt.torch.saving.dealt_batches import DealtBatches, unread
from psrt.torch.saving.resumable import Resumable

__all__ = ["Checkpointer", "DealtBatches", "Resumable", "unread"]
