"""lowlevel: files in reading order.

hashing     Stable hashes: the same on every host, in every version; checkpoints and plans
            depend on them
prefetch    Asking the processor for memory that a loop will need soon
copying     Rows copied and added number by number, eight at a time
unaligned   Eight bytes at any place of an array, read and written at once, in the order of the
            processor
addresses   Addresses of float32 arrays, and inside of kernels arrays by their addresses
blas        The BLAS that numpy brings, called from inside a kernel: a product without the
            interpreter
elementary  Elementary functions for kernels to call: eˣ, ln(1 + t), erf, sigmoid
denormals   Denormal numbers count as zero, in threads that were told so
spin        Waiting a moment for a change in memory, or for a message, without the
            interpreter's lock
"""

from __future__ import annotations

from psrt.kernels.lowlevel import addresses, blas
from psrt.kernels.lowlevel.addresses import address_of_rows, addresses_of, matrix_at, vector_at
from psrt.kernels.lowlevel.blas import (
    AS_IS,
    COLUMN_MAJOR,
    ROW_MAJOR,
    TURNED,
    gemm,
    gemv,
    thread_counts,
)
from psrt.kernels.lowlevel.copying import add_row, copy_row
from psrt.kernels.lowlevel.denormals import denormals_flushed
from psrt.kernels.lowlevel.elementary import erf_of, exp_of, log1p_of, sigmoid_of
from psrt.kernels.lowlevel.hashing import digest, mix64, stable_hash, virtual_shard, virtual_shards
from psrt.kernels.lowlevel.prefetch import (
    AHEAD,
    FAR_BYTES,
    LINE_BYTES,
    prefetch,
    prefetch_row,
    prefetch_words,
)
from psrt.kernels.lowlevel.spin import announce, await_change, await_input
from psrt.kernels.lowlevel.unaligned import eight_bytes, put_eight_bytes

__all__ = [
    "AHEAD",
    "AS_IS",
    "COLUMN_MAJOR",
    "FAR_BYTES",
    "LINE_BYTES",
    "ROW_MAJOR",
    "TURNED",
    "add_row",
    "address_of_rows",
    "addresses",
    "addresses_of",
    "announce",
    "await_change",
    "await_input",
    "blas",
    "copy_row",
    "denormals_flushed",
    "digest",
    "eight_bytes",
    "erf_of",
    "exp_of",
    "gemm",
    "gemv",
    "log1p_of",
    "matrix_at",
    "mix64",
    "prefetch",
    "prefetch_row",
    "prefetch_words",
    "put_eight_bytes",
    "sigmoid_of",
    "stable_hash",
    "thread_counts",
    "vector_at",
    "virtual_shard",
    "virtual_shards",
]
