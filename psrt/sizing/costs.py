"""CPU time that a pserver spends on the calls of trainers: four constants, measured.

`benchmarks/size_model.py` measures them (`costs`); these are of a quiet virtual host, Xeon at 2.6
GHz, Python 3.11, SGD. Adam moves three times the bytes of a row, and other hosts are faster or
slower: take what follows from them as right within a factor of 2. Python runs on one core at a
time, however many there are, which bounds calls and parts; copying bytes and updating rows happen
in compiled code beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from psrt.sizing.traffic import CallKind

CALL_S = 130e-6
"""Of one call: waking a thread, decoding and encoding headers, one part."""
PART_S = 7e-6
"""Of each further block or table that a call names."""
BYTE_S = 0.3e-9
"""Of each byte in or out: through the socket, and into or out of a table."""
ROW_S = 75e-9
"""Of each row found, read or updated, besides its bytes."""


def python_s(calls: Iterable[CallKind]) -> float:
    """Of a step of one trainer, what only one core at a time can do."""
    parts = ((call.per_step, call.request.parts) for call in calls)
    return sum(per_step * (CALL_S + PART_S * max(0, number - 1)) for per_step, number in parts)


def compiled_s(calls: Iterable[CallKind]) -> float:
    """Of a step of one trainer, what all cores share."""
    return sum(
        call.per_step
        * (
            BYTE_S * (call.request.size_bytes + call.reply.size_bytes)
            + ROW_S * (call.request.rows + call.reply.rows)
        )
        for call in calls
    )
