"""reading: files in reading order.

readers   Readers: what one thread does with its files, one after the other, in any format
queue     Reader threads that keep a bounded queue of mini-batches filled
settings  What a dataset is told before it is read: slots, files, batch size, threads, the
          program between
"""

from __future__ import annotations

from psrt.data.reading.queue import BoundedQueue, QueueReader
from psrt.data.reading.readers import FileReader, reader_of
from psrt.data.reading.settings import DatasetSettings

__all__ = ["BoundedQueue", "DatasetSettings", "FileReader", "QueueReader", "reader_of"]
