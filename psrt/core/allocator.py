"""What a process of psrt's own asks of the C allocator: to keep what was freed, for reuse.

A step allocates arrays of the same sizes as the step before. Left alone, glibc gives each of them
back to the system and maps it anew, and the kernel clears it page by page: about a third of a
trainer's CPU time in W2. This concerns the whole process, so only the commands `psrt pserver` and
`psrt trainer` ask for it; who uses psrt as a library decides for himself.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_… of malloc.h
KEPT_BYTES = 256 << 20
LARGEST_BYTES = 32 << 20


def keep_freed_memory() -> bool:
    """Keep freed blocks of up to `LARGEST_BYTES`, and `KEPT_BYTES` in all, for reuse.

    False where the C library has no `mallopt` or refuses; nothing depends on it but speed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
