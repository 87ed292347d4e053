"""CPU time of a pserver for the calls of trainers: four constants, measured.

`benchmarks/size_model/costs.py` measures them; these are of a quiet virtual host, Xeon at 2.6
GHz, Python 3.11, SGD. Adam moves three times the bytes of a row, and other hosts are faster or
slower: results are right within a factor of 2. Python runs on one core at a time, which bounds
calls and parts; compiled code copies bytes and updates rows in parallel with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from psrt.sizing.traffic import CallKind

CALL_S = 130e-6
"""Per call: waking a thread, decoding and encoding headers, one part."""
PART_S = 7e-6
"""Per further block or table in a call."""
BYTE_S = 0.3e-9
"""Per byte in or out: through the socket, and into or out of a table."""
ROW_S = 75e-9
"""Per row found, read or updated, in addition to its bytes."""


def python_s(calls: Iterable[CallKind]) -> float:
    """Seconds of Python per step of one trainer: one core at a time."""
    parts = ((call.per_step, call.request.parts) for call in calls)
    return sum(per_step * (CALL_S + PART_S * max(0, number - 1)) for per_step, number in parts)


def compiled_s(calls: Iterable[CallKind]) -> float:
    """Seconds of compiled code per step of one trainer: on all cores."""
    return sum(
        call.per_step
        * (
            BYTE_S * (call.request.size_bytes + call.reply.size_bytes)
            + ROW_S * (call.request.rows + call.reply.rows)
        )
        for call in calls
    )


__all__ = ["compiled_s", "python_s"]
