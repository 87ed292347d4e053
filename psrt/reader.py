"""Reader decorators, for data that Python code gives one example after the other.

    train = psrt.reader.batch(psrt.reader.shuffle(read_examples, 10_000), 128)
    for examples in train(): …

A data set in files is read much faster by `psrt.QueueDataset`.
"""

from __future__ import annotations

from psrt.data.python import (
    ComposeNotAligned,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)

__all__ = ["ComposeNotAligned", "batch", "buffered", "cache", "chain", "compose", "firstn"]
__all__ += ["map_readers", "multiprocess_reader", "shuffle", "xmap_readers"]
