"""Batches for runs, from Python and from files. In reading order:

data_feeder  tuples, one for each example, as feeds
feed_queue   batches that a program's own threads push
reader       loaders: `DataLoader`, `PyReader`
dataset      files for `train_from_dataset`
"""

from psrt.fluid.feeding import reader
from psrt.fluid.feeding.data_feeder import DataFeeder
from psrt.fluid.feeding.dataset import CoreDataset, DatasetFactory, InMemoryDataset, QueueDataset
from psrt.fluid.feeding.reader import DataLoader, PyReader, next_feed

__all__ = [
    "CoreDataset",
    "DataFeeder",
    "DataLoader",
    "DatasetFactory",
    "InMemoryDataset",
    "PyReader",
    "QueueDataset",
    "next_feed",
    "reader",
]
