"""Users' generators and reader decorators: files in reading order.

generator   Users' own preprocessing: their lines in, MultiSlot text out
decorators  Reader decorators: from readers to readers, one example after the other
read_ahead  Reader decorators with threads: `buffered` and `xmap_readers`
processes   Reader decorator with processes: `multiprocess_reader`
"""

from psrt.data.python.decorators import (
    ComposeNotAligned,
    Reader,
    batch,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    shuffle,
)
from psrt.data.python.generator import (
    DataGenerator,
    MultiSlotDataGenerator,
    MultiSlotStringDataGenerator,
)
from psrt.data.python.processes import ReaderProcessError, multiprocess_reader
from psrt.data.python.read_ahead import buffered, xmap_readers

__all__ = ["ComposeNotAligned", "DataGenerator", "MultiSlotDataGenerator"]
__all__ += ["MultiSlotStringDataGenerator", "Reader", "batch", "buffered", "cache", "chain"]
__all__ += ["compose", "firstn", "map_readers", "multiprocess_reader", "shuffle"]
__all__ += ["ReaderProcessError", "xmap_readers"]
