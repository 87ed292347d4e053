"""Batches of a loader, with their rows, before the training loop asks for them.

collating   ragged ids of a DataLoader as one batch
batch_ids   the ids that a model will look up in a batch
read_batch  a batch that was read ahead
pulled_rows  batches whose rows come some steps before their turn
prefetch    batches and rows, read ahead in threads
"""

from psrt.torch.reading.collating import collate
from psrt.torch.reading.prefetch import Prefetch

__all__ = ["Prefetch", "collate"]
