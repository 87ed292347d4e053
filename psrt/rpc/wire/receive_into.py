"""Receive large tensors straight into arrays that the caller named.

`Message.into` names arrays for the tensors of a reply: large ones are received there instead of
into a buffer that they are copied from. Bytes are written before the reply is complete, so nobody
may read these arrays before the call has succeeded. Dtype, shape and position of a tensor are
checked before a byte of it is written; a tensor that does not fit goes into the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from psrt.core.types import U8, Array
from psrt.rpc.wire.buffers import address
from psrt.rpc.wire.frames import Message, decode, head_has_come

_LEAST_BYTES = 64 * 1024  # smaller tensors are copied before their target would be found


class Placed(NamedTuple):
    """`message` is valid once the missing bytes of its frame were received into `gather`."""

    message: Message
    gather: list[memoryview]


class _Span(NamedTuple):
    """Tensor `number` of a message: bytes `start` to `end` of its frame."""

    number: int
    start: int
    end: int


def receive_into(frame: U8, got: int, into: Sequence[Array | None]) -> Placed | None:
    """Plan the receipt of the rest of `frame`, of which `got` bytes have arrived.

    Copies bytes of tensors that have arrived to their targets. Returns None where all of the frame
    goes into its buffer.
    """
    if not head_has_come(frame.data, got):
        return None
    message = decode(frame)  # reads the header only
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
    return Placed(message, skip_bytes([*gather, frame.data[end:]], got)) if end else None


def skip_bytes(parts: list[Any], size_bytes: int) -> list[Any]:
    """Return a gather list without its first `size_bytes`, which were transferred."""
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
    """True if each tensor is in the frame, behind the one before, as `encode` lays them out.

    Tensors of other encoders may overlap, or were copied elsewhere because they are not aligned.
    """
    starts = [*(span.start for span in spans), size_bytes]
    ends = [0, *(span.end for span in spans)]
    return all(end <= start for end, start in zip(ends, starts, strict=True))


def _fits(target: Array, tensor: Array) -> bool:
    same = target.dtype == tensor.dtype and target.shape == tensor.shape
    plain = target.flags.c_contiguous and target.flags.writeable
    return same and plain and tensor.nbytes >= _LEAST_BYTES
