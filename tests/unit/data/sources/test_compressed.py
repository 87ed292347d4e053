"""Gzip, read some bytes at a time, against Python's gzip module."""

from __future__ import annotations

import gzip
import io
import zlib
from functools import partial

import numpy as np
import pytest
from isal import isal_zlib

from psrt.data.sources.compressed import GZIP_ERRORS, GzipText

DIGITS = np.random.default_rng(1).integers(ord("0"), ord("9"), 300_000, np.uint8).tobytes()
MEMBERS = [DIGITS, b"", b"x" * 1_000_000, b"end"]


@pytest.fixture(params=[zlib, isal_zlib], ids=["zlib", "isal"])
def text_of(request):
    return partial(text_by, request.param.decompressobj)


def text_by(member, stored: bytes, step: int) -> bytes:
    file, into, parts = GzipText(io.BytesIO(stored), member), bytearray(step), []
    while got := file.readinto(into):
        parts.append(bytes(into[:got]))
    return b"".join(parts)


@pytest.mark.parametrize("step", [1 << 20, 4096, 999])
@pytest.mark.parametrize("padding", [b"", bytes(100_000)], ids=["", "zeros"])
def test_members_behind_each_other_are_one_text(text_of, step, padding):
    stored = b"".join(map(gzip.compress, MEMBERS)) + padding

    assert text_of(stored, step) == b"".join(MEMBERS)


@pytest.mark.parametrize("missing", [1, 8, 9, 100])
def test_a_member_without_its_end_is_not_taken_for_a_text(text_of, missing):
    with pytest.raises(EOFError):
        text_of(gzip.compress(DIGITS)[:-missing], 4096)


def test_a_wrong_sum_or_something_else_behind_a_member_is_an_error(text_of):
    stored = gzip.compress(DIGITS)

    with pytest.raises(GZIP_ERRORS):
        text_of(stored[:-8] + bytes(8), 4096)
    with pytest.raises((EOFError, *GZIP_ERRORS)):  # it may take it for a header that is cut off
        text_of(stored + b"text", 4096)
