"""Files to batches, by one thread or several: files in reading order.

readers   Readers of one thread: its files one after the other, in any format
rests     The unread rests of files behind positions of readers, as units that can be dealt
queue     Reader threads that keep a bounded queue of mini-batches filled
ahead     A background thread that keeps the next few items of a generator ready
settings  Settings of a dataset: slots, files, batch size, threads, pipe command
"""

from psrt.data.reading.ahead import WAIT_S, Ahead, late, leave
from psrt.data.reading.queue import QueueReader
from psrt.data.reading.readers import FileReader, reader_of
from psrt.data.reading.rests import rests_of
from psrt.data.reading.settings import DatasetSettings

__all__ = ["WAIT_S", "Ahead", "DatasetSettings", "FileReader", "late", "leave", "reader_of"]
__all__ += ["QueueReader", "rests_of"]
