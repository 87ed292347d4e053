"""Files through a program of the user's: its output, its end, its failures, its processes."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from psrt.core.errors import DataError, DeadlineError
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Slot
from psrt.data.sources.pipe import Piped
from tests.support.carriers import eventually

PYTHON = sys.executable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "part-0"
    path.write_text("".join(f"{i}\n" for i in range(5)))
    return path


def text(command: str, path: Path) -> str:
    return "".join(block.tobytes().decode() for block in Piped(command).blocks(path))


def pipe_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("data-pipe")]


def test_a_program_gets_the_file_and_gives_the_text(file):
    assert text("sed s/^/x/", file) == "x0\nx1\nx2\nx3\nx4\n"


def test_a_gzip_file_reaches_the_program_decompressed(file):
    file.write_bytes(gzip.compress(b"a\nb\n" * 100_000))

    assert text("sort | uniq -c | tr -s ' '", file) == " 100000 a\n 100000 b\n"


def test_a_program_need_not_read_to_the_end(file):
    file.write_bytes(gzip.compress(b"a\n" * 1_000_000))

    assert text("head -2", file) == "a\na\n"


def test_output_without_a_last_newline_is_whole(file):
    assert text("cat; printf end", file).endswith("4\nend\n")


def test_a_program_that_fails_is_an_error_with_the_file_and_its_last_words(file):
    command = f"{PYTHON} -c 'import nothing_of_that_name'"

    with pytest.raises(DataError) as raised:
        text(command, file)

    assert f"{file} | {command}: the program ended with exit code 1." in raised.value.message
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in raised.value.message
    assert pipe_threads() == []


def test_only_the_last_lines_of_a_long_complaint_are_shown(file):
    with pytest.raises(DataError) as raised:
        text("seq 1 100000 >&2; exit 3", file)

    assert raised.value.message.endswith("99996\n  99997\n  99998\n  99999\n  100000")


def test_a_program_that_is_killed_is_told_by_its_signal(file):
    with pytest.raises(DataError, match=r"was killed by signal 9\. It wrote nothing to"):
        text("kill -9 $$", file)


def test_a_command_that_does_not_exist_says_so(file):
    with pytest.raises(DataError, match=r"exit code 127[\s\S]*no_such_program: .*not found"):
        text("no_such_program", file)


def test_a_failure_before_the_last_program_of_a_pipe_is_seen(file):
    with pytest.raises(DataError, match="exit code 4"):
        text("(exit 4) | cat", file)


def test_what_a_program_that_succeeds_complains_of_is_logged(file, caplog):
    with caplog.at_level(logging.WARNING):
        text("cat; echo two lines skipped >&2", file)

    [record] = caplog.records
    assert f"{file} | cat; echo" in record.message
    assert record.message.endswith("two lines skipped")


def test_a_damaged_gzip_file_is_named_not_the_program(file):
    file.write_bytes(gzip.compress(os.urandom(100_000))[:-20])

    with pytest.raises(DataError, match=r"part-0.*: the gzip file is cut off"):
        text("cat -", file)


def test_a_process_left_in_the_background_does_not_outlive_the_file(file):
    assert text("sleep 600 >/dev/null & cat", file) == "0\n1\n2\n3\n4\n"


def test_whoever_stops_reading_early_ends_the_process(file):
    blocks = Piped("yes").blocks(file)
    next(blocks)

    blocks.close()

    assert pipe_threads() == []


def test_malformed_output_names_the_file_the_command_and_the_line(file):
    command = "sed s/3/three/"
    slots = [Slot("id", "uint64")]
    file.write_text("1 1\n1 2\n1 3\n")

    with (
        QueueReader([file], slots, 1, source=Piped(command)) as reader,
        pytest.raises(DataError, match=r"part-0 \| sed s/3/three/, line 3, column 3, slot 'id'"),
    ):
        list(reader)


def test_a_program_that_says_nothing_is_found_by_the_deadline_and_ended(file):
    slots = [Slot("id", "uint64")]

    with (
        QueueReader([file], slots, 1, source=Piped("sleep 600"), wait_timeout_s=0.2) as reader,
        pytest.raises(DeadlineError, match=r"no batch within 0.2 s; reader .*part-0"),
    ):
        list(reader)

    assert pipe_threads() == []


def test_a_source_that_was_stopped_starts_nothing_more(file):
    source = Piped("yes")
    source.stop()

    blocks = source.blocks(file)

    assert sum(map(len, blocks)) < 1 << 30
    assert pipe_threads() == []


READER = """
import sys
from pathlib import Path
from psrt.data.sources.pipe import Piped
path = Path(sys.argv[1])
list(Piped(f"echo $$ > {path}.pid; sleep 1000").blocks(path))
"""


def test_a_program_that_hangs_ends_with_a_reader_that_is_killed(file):
    said = file.with_name("part-0.pid")
    reader = subprocess.Popen([PYTHON, "-c", READER, str(file)])
    try:
        eventually(lambda: said.exists() and said.read_text().endswith("\n"), "the program")
    finally:
        reader.kill()
        reader.wait()

    group = int(said.read_text())
    eventually(lambda: not alive_in(group), "the end of the program")


def alive_in(group: int) -> list[str]:
    """Commands of the processes of a group that are not zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            state, _, number, *_ = rest.split()
            if int(number) == group and state != "Z":
                found.append(name)
    return found


def test_a_program_may_wait_for_its_children(file):
    assert text("(sleep 0.01; cat) <&0 & wait", file) == "0\n1\n2\n3\n4\n"
