"""Setting of the C allocator that keeps freed memory for reuse.

Each step allocates arrays of the sizes of the step before. By default, glibc returns each of them
to the system and maps it anew, and the kernel clears it page by page: about a third of a trainer's
CPU time in W2. The setting concerns the whole process, so only the commands `psrt pserver` and
`psrt trainer` make it; programs that use psrt as a library decide for themselves.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_… of malloc.h
KEPT_BYTES = 256 << 20
LARGEST_BYTES = 32 << 20


def keep_freed_memory() -> bool:
    """Keep freed blocks of up to `LARGEST_BYTES`, and `KEPT_BYTES` in all, for reuse.

    Returns False where the C library has no `mallopt` or refuses; only speed depends on it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
