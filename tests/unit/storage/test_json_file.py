"""A JSON document with its checksum is plain JSON, and any damage of it is found."""

from __future__ import annotations

import json
import random

import pytest

from psrt.core.errors import ErrorCode, StorageError
from psrt.storage import json_file

MEMBERS = {"cut": 7, "parts": {"a": [1, 2.5, None]}, "name": "été"}
DATA = json_file.encode("psrt-cut", 1, MEMBERS)


def decode(data: bytes) -> dict:
    return json_file.decode("7/manifest.json", data, "psrt-cut", 1)


def test_members_come_back() -> None:
    assert decode(DATA) == MEMBERS


def test_any_parser_reads_it() -> None:
    plain = json.loads(DATA)

    assert (plain["format"], plain["version"], plain["cut"]) == ("psrt-cut", 1, 7)
    assert DATA.endswith(b'"\n}\n')


def test_a_document_without_members_of_its_own_comes_back() -> None:
    assert json_file.decode("f", json_file.encode("a", 2, {}), "a", 2) == {}


def test_every_changed_missing_or_added_byte_is_found() -> None:
    rng = random.Random(1)
    for at, value in enumerate(DATA):
        assert_damaged(DATA[:at] + bytes([value ^ rng.randrange(1, 256)]) + DATA[at + 1 :])
        assert_damaged(DATA[:at])
        assert_damaged(DATA[:at] + DATA[at + 1 :] if at else DATA[1:])
        assert_damaged(DATA[:at] + b" " + DATA[at:])
    assert_damaged(DATA + b"\n")
    assert_damaged(DATA + DATA)


def assert_damaged(data: bytes) -> None:
    with pytest.raises(StorageError, match=r"7/manifest\.json is damaged") as caught:
        decode(data)
    assert caught.value.code == ErrorCode.FILE_DAMAGED


def test_another_format_or_version_is_refused() -> None:
    with pytest.raises(StorageError, match=r"it is \('psrt-cut', 2\)"):
        decode(json_file.encode("psrt-cut", 2, MEMBERS))
    with pytest.raises(StorageError, match="it is"):
        decode(json_file.encode("psrt-lease", 1, MEMBERS))


def test_members_that_are_not_json_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_file.encode("psrt-cut", 1, {"rate": float("inf")})
