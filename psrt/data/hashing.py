"""Ids of texts: 63-bit hashes, one function for files with `[data.columns]`, for `psrt data criteo`
and `avazu`, and for programs that serve a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import I64
from psrt.kernels.text import NEWLINE, hash_texts

_SIGNED = 1 << 63


def hash_ids(texts: Iterable[str | bytes | int | None], salt: int = 0, buckets: int = 0) -> I64:
    """Return the ids (n,) int64 of n texts, as a column with `kind = "text"` has them.

    An integer is hashed as its decimal digits, None as the empty text of a missing cell. Equal
    texts of different slots have different ids if their `salt` differs. With `buckets` ids are
    0 … buckets − 1, without 0 … 2⁶³ − 1. Raises `ConfigError` for floats, which have several
    texts, and for illegal arguments. In other languages, with unsigned integers of 64 bits:

        h = 14695981039346656037                     64-bit FNV-1a (draft-eastlake-fnv)
        for each byte b of the text in UTF-8:
            h = (h ^ b) * 1099511628211
        id = mix(h ^ mix(salt)) >> 1
        id = id % buckets                            if there are buckets

        mix(x):                                      the finalizer of SplitMix64 (Steele, Lea &
            x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9    Flood 2014, Stafford's variant 13)
            x = (x ^ (x >> 27)) * 0x94d049bb133111eb
            return x ^ (x >> 31)
    """
    if not -_SIGNED <= salt < _SIGNED or not 0 <= buckets < _SIGNED:
        raise ConfigError(
            f"hash_ids: salt is {salt!r} and buckets {buckets!r}, expected a signed integer of 64 "
            "bits and a number of ids."
        )
    encoded = [encoded_text(text) for text in texts]
    text, starts, stops = ranges_of(encoded)
    out = np.empty(len(encoded), np.int64)
    hash_texts(text, starts, stops, salt, out)
    return bucketed_ids(out, buckets)


def bucketed_ids(ids: I64, buckets: int) -> I64:
    """Return ids (n,), as unsigned integers, modulo `buckets`; unchanged if that is 0."""
    if not buckets:
        return ids
    return (ids.view(np.uint64) % np.uint64(buckets)).view(np.int64)


def encoded_text(value: object) -> bytes:
    """The bytes of a text, of an integer's digits, or none of None; raises `ConfigError`."""
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        return str(value).encode()
    raise ConfigError(
        f"hash_ids: {value!r} is no text.", hint="Give texts, integers, or None for missing ones."
    )


def ranges_of(encoded: Sequence[bytes]) -> tuple[np.ndarray, I64, I64]:
    """Return (text, starts, stops) of values, each of which ends at a newline, as scanners need."""
    lengths = np.array([len(each) for each in encoded], np.int64)
    stops = np.cumsum(lengths + 1) - 1
    text = np.frombuffer(b"".join(each + b"\n" for each in encoded) or b"\n", np.uint8)
    assert text[-1] == NEWLINE
    return text, stops - lengths, stops
