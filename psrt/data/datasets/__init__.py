"""datasets: files in reading order.

records         Records: examples kept in memory as a few arrays, whatever their number
arena           Memory for the words of many records, taken piece by piece
packing         Batches as parsers give them, packed into records
record_lines    MultiSlot lines to records in memory, without batches in between
record_readers  Readers of records: what one thread does with its files, in any format, to keep
                them
scattering      Records on their way to other trainers: which trainer each goes to, and records
                as tensors
loading         Threads that read whole files into memory
prefixes        Words in front of a MultiSlot line: `1 <ins_id>`, then `1 <content>`, as they
                are declared
merging         Records of the same ins_id, made into one
memory          The memory of a dataset: records, the order they come in, and slots exchanged
                between them
in_memory       `InMemoryDataset`: every record of its files in memory once, in any order
datasets        Datasets: files of examples as batches, read while training or kept in memory
"""

from __future__ import annotations

from psrt.data.datasets import datasets
from psrt.data.datasets.datasets import InMemoryDataset, QueueDataset
from psrt.data.datasets.records import Records
from psrt.data.datasets.scattering import Scattering, Shelf, records_of, tensors_of

__all__ = [
    "InMemoryDataset",
    "QueueDataset",
    "Records",
    "Scattering",
    "Shelf",
    "datasets",
    "records_of",
    "tensors_of",
]
