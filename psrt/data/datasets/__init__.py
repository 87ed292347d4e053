"""In-memory and queue datasets: files in reading order.

records       Examples kept in memory as a few arrays, and the memory for their words
packing       Batches of parsers, packed into records
record_lines  MultiSlot lines to records, without batches in between
scattering    Records on their way to other trainers, and records as tensors
loading       Threads that read whole files into memory, and their readers
prefixes      Words in front of a MultiSlot line: `1 <ins_id>`, then `1 <content>`
merging       Records with one ins_id, merged into one
memory        The memory of a dataset: records, their order, slots exchanged between them
in_memory     `InMemoryDataset`: all records of its files in memory, in any order
datasets      `QueueDataset`: files read while training
"""

from psrt.data.datasets import datasets
from psrt.data.datasets.datasets import InMemoryDataset, QueueDataset
from psrt.data.datasets.prefixes import CONTENT, INS_ID
from psrt.data.datasets.records import Records
from psrt.data.datasets.scattering import Scattering, Shelf, records_of, tensors_of

__all__ = ["CONTENT", "INS_ID", "InMemoryDataset", "QueueDataset", "Records"]
__all__ += ["Scattering", "Shelf", "datasets", "records_of", "tensors_of"]
