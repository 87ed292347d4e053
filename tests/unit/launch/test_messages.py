"""Lines between a launcher and its runners."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psrt.launch.outputs import LineSplitter
from psrt.launch.runners.messages import (
    bytes_of,
    files_field,
    files_of,
    message_in,
    packed,
    text_of,
)


@given(st.binary(), st.integers(1, 9))
def test_any_output_arrives_byte_for_byte_however_it_is_cut(raw: bytes, size: int) -> None:
    chunks = [raw[i : i + size] for i in range(0, len(raw), size)]
    sent = b"".join(packed("output", text=text_of(chunk)) for chunk in chunks)
    lines = LineSplitter()

    received = [line for byte in sent for line in lines.feed(bytes([byte]))]

    assert b"".join(bytes_of(message_in(line)["text"]) for line in received) == raw
    assert lines.rest == b""


def test_files_of_any_bytes_arrive_unchanged() -> None:
    files = {"a/b.bin": bytes(range(256)), "empty": b""}

    assert files_of(message_in(packed("files", files=files_field(files)))["files"]) == files


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"kind": 1}', b"Welcome to host a"])
def test_a_line_that_is_no_message_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        message_in(line)
