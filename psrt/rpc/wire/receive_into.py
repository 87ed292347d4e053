"""Where the bytes of a frame go that is still being received.

Whoever asks for large tensors may say in `Message.into` where they belong: then they are received
there, instead of into a buffer that they are copied from. This happens before the reply is whole,
so nobody may look at these arrays before the call has succeeded. Dtype, shape and place of a tensor
are checked before a byte of it is written; what does not fit is received as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from psrt.core.types import U8, Array
from psrt.rpc.wire.buffers import address
from psrt.rpc.wire.frames import Message, decode, head_has_come

_LEAST_BYTES = 64 * 1024  # smaller tensors are copied before their place would be found


class Placed(NamedTuple):
    """`gather`: where what is still missing of a frame goes, in its order; then `message` is it."""

    message: Message
    gather: list[memoryview]


class _Span(NamedTuple):
    """A tensor of a frame: its number, and its bytes in the frame."""

    number: int
    start: int
    end: int


def receive_into(frame: U8, got: int, into: Sequence[Array | None]) -> Placed | None:
    """How to receive the rest of `frame`, of which `got` bytes are there; None: as it lies.

    Bytes that are there already are copied to where they belong.
    """
    if not head_has_come(frame.data, got):
        return None
    message = decode(frame)  # of the payload only the places are looked at
    spans = _spans(frame, message.tensors)
    gather, end = [], 0
    for span in spans if _in_order(spans, len(frame)) else ():
        target = into[span.number] if span.number < len(into) else None
        if target is None or not _fits(target, message.tensors[span.number]):
            continue
        message.tensors[span.number] = target
        flat = target.reshape(-1).view(np.uint8)
        early = frame[span.start : max(span.start, min(got, span.end))]
        flat[: len(early)] = early
        gather += [frame.data[end : span.start], flat.data]
        end = span.end
    return Placed(message, without([*gather, frame.data[end:]], got)) if end else None


def without(parts: list[Any], size_bytes: int) -> list[Any]:
    """What is left of a gather list when the first `size_bytes` were transferred."""
    for i, part in enumerate(parts):
        if size_bytes < len(part):
            return [memoryview(part)[size_bytes:], *parts[i + 1 :]]
        size_bytes -= len(part)
    return []


def _spans(frame: U8, tensors: Sequence[Array]) -> list[_Span]:
    starts = [address(tensor) - address(frame) for tensor in tensors]
    return [
        _Span(number, start, start + tensor.nbytes)
        for number, (start, tensor) in enumerate(zip(starts, tensors, strict=True))
        if tensor.size
    ]


def _in_order(spans: Sequence[_Span], size_bytes: int) -> bool:
    """Whether each tensor lies in the frame, behind the one before, as ours do.

    A stranger's may overlap, or have been copied elsewhere because they were not aligned.
    """
    starts = [*(span.start for span in spans), size_bytes]
    ends = [0, *(span.end for span in spans)]
    return all(end <= start for end, start in zip(ends, starts, strict=True))


def _fits(target: Array, tensor: Array) -> bool:
    same = target.dtype == tensor.dtype and target.shape == tensor.shape
    plain = target.flags.c_contiguous and target.flags.writeable
    return same and plain and tensor.nbytes >= _LEAST_BYTES
