"""Batches of a loader: ragged ids put together, and batches and rows read ahead.

collate    ragged ids of a DataLoader as one batch
batch_ids  the ids that a model will look up in a batch
prefetch   batches and rows, read ahead in threads
"""

from psrt.torch.batches.collate import collate
from psrt.torch.batches.prefetch import Prefetch

__all__ = ["Prefetch", "collate"]
