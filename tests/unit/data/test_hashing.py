"""Ids of texts: the formula of the docstring, and equal to those of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt.core.errors import ConfigError
from psrt.data.formats import format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Slot

TEXTS = ["", "a", "1fbe01fe", "Zürich", "x" * 100]
_64 = (1 << 64) - 1


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _64
    return x ^ (x >> 31)


def by_formula(text: str, salt: int, buckets: int) -> int:
    h = 14695981039346656037
    for byte in text.encode():
        h = ((h ^ byte) * 1099511628211) & _64
    found = mix(h ^ mix(salt & _64)) >> 1
    return found % buckets if buckets else found


@pytest.mark.parametrize(("salt", "buckets"), [(0, 0), (3, 0), (-1, 1000), (7, 1)])
def test_ids_follow_the_published_formula(salt: int, buckets: int) -> None:
    expected = [by_formula(text, salt, buckets) for text in TEXTS]

    assert psrt.hash_ids(TEXTS, salt, buckets).tolist() == expected


def test_bytes_integers_and_gaps_are_texts_and_floats_are_refused() -> None:
    assert np.array_equal(psrt.hash_ids([b"a", 12, None]), psrt.hash_ids(["a", "12", ""]))
    with pytest.raises(ConfigError, match=r"1\.0 is no text"):
        psrt.hash_ids([1.0])
    with pytest.raises(ConfigError, match="buckets -1"):
        psrt.hash_ids(["a"], buckets=-1)


def test_columns_of_files_have_these_ids_in_buckets_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{text},{2**63 + 5}\n" for text in TEXTS))
    columns = {
        "plain": {"column": "a", "kind": "text", "salt": 2},
        "few": {"column": "a", "kind": "text", "salt": 2, "buckets": 10},
        "ids": {"column": "b", "kind": "id", "buckets": 10},
    }
    slots = [Slot(name, "uint64", 1) for name in columns]
    csv = format_named("csv", slots, {"columns": columns})
    with QueueReader([tmp_path / "a.csv"], slots, 10, format=csv) as batches:
        (batch,) = batches

    assert np.array_equal(np.ravel(batch["plain"]), psrt.hash_ids(TEXTS, 2))
    assert np.array_equal(np.ravel(batch["few"]), psrt.hash_ids(TEXTS, 2, 10))
    assert np.ravel(batch["ids"]).tolist() == [(2**63 + 5) % 10] * len(TEXTS)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "text", "buckets": -1}, "buckets is -1"),
        ({"kind": "text", "buckets": 1.5}, "buckets is 1.5"),
    ],
)
def test_illegal_buckets_are_refused(entry: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        format_named("csv", [Slot("a", "uint64", 1)], {"columns": {"a": entry}})
