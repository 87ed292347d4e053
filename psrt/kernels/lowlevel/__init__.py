"""Building blocks of kernels: hashes, memory, BLAS, waits. In reading order:

hashing     stable hashes, equal on every host and in every version
prefetch    prefetches of memory that a loop will need soon
copying     rows copied and added eight numbers at a time
unaligned   eight bytes at any place of an array
addresses   addresses of float32 arrays, and arrays by their addresses
blas        numpy's BLAS, called from inside a kernel
elementary  elementary functions: eˣ, ln(1 + t), erf, sigmoid
denormals   flushing of denormal numbers to zero, by thread
spin        busy waits for a change in memory, or for a message
"""

from psrt.kernels.lowlevel import addresses, blas
from psrt.kernels.lowlevel.addresses import address_of_rows, addresses_of, matrix_at, vector_at
from psrt.kernels.lowlevel.blas import (
    COLUMN_MAJOR,
    NO_TRANSPOSE,
    ROW_MAJOR,
    TRANSPOSE,
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

__all__ = ["AHEAD", "COLUMN_MAJOR", "FAR_BYTES", "LINE_BYTES", "NO_TRANSPOSE", "ROW_MAJOR"]
__all__ += ["TRANSPOSE", "add_row", "address_of_rows", "addresses", "addresses_of", "announce"]
__all__ += ["await_change", "await_input", "blas", "copy_row", "denormals_flushed", "digest"]
__all__ += ["eight_bytes", "erf_of", "exp_of", "gemm", "gemv", "log1p_of", "matrix_at", "mix64"]
__all__ += ["prefetch", "prefetch_row", "prefetch_words", "put_eight_bytes", "sigmoid_of"]
__all__ += ["stable_hash", "thread_counts", "vector_at", "virtual_shard", "virtual_shards"]
