"""Reader threads and their queue: order, errors, back-pressure, ends."""

from __future__ import annotations

import gzip
import threading

import numpy as np
import pytest

from psrt.core.counters import Counters
from psrt.core.errors import DataError, DeadlineError
from psrt.data.reading.queue import BoundedQueue, QueueReader
from psrt.data.slots import Slot, batch_rows
from psrt.data.sources.sources import Files

SLOTS = [Slot("id", "uint64"), Slot("x", "float", 1)]


@pytest.fixture
def files(tmp_path):
    """Five files of 7 lines; file f holds ids 100 f … 100 f + 6."""
    paths = [tmp_path / f"part-{f}" for f in range(5)]
    for f, path in enumerate(paths):
        path.write_text("".join(f"1 {100 * f + i} 1 0.5\n" for i in range(7)))
    return paths


ALL_IDS = [100 * f + i for f in range(5) for i in range(7)]


def ids_of(batches) -> list[int]:
    return np.concatenate([batch["id"].values for batch in batches]).tolist()


def reader_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("data-reader")]


def test_one_thread_keeps_the_order_of_files_and_lines(files):
    with QueueReader(files, SLOTS, 4) as reader:
        batches = list(reader)

    assert ids_of(batches) == ALL_IDS
    assert [batch_rows(batch) for batch in batches] == [4] * 8 + [3]


@pytest.mark.parametrize("threads", [2, 3, 9])
def test_several_threads_read_every_line_once(files, threads):
    with QueueReader(files, SLOTS, 4, threads=threads, capacity=1) as reader:
        batches = list(reader)

    assert sorted(ids_of(batches)) == ALL_IDS


def test_no_more_threads_than_files(files):
    with QueueReader(files[:2], SLOTS, 1, threads=8, capacity=1):
        assert len(reader_threads()) == 2


def test_gzip_and_plain_files_mix(files):
    files[1].write_bytes(gzip.compress(files[1].read_bytes()))

    with QueueReader(files, SLOTS, 4) as reader:
        assert ids_of(reader) == ALL_IDS


def test_files_without_lines_are_no_batches(tmp_path):
    (tmp_path / "empty").touch()

    with QueueReader([tmp_path / "empty"], SLOTS, 4) as reader:
        assert list(reader) == []


def test_no_files_are_no_batches():
    with QueueReader([], SLOTS, 4) as reader:
        assert list(reader) == []


def test_a_malformed_line_reaches_the_consumer_after_the_batches_before_it(files):
    files[1].write_text("1 100 1 0.5\n1 101 oops\n")
    seen = []

    with (
        QueueReader(files, SLOTS, 4) as reader,
        pytest.raises(DataError, match=r"part-1, line 2, column 7, slot 'x'"),
    ):
        seen.extend(reader)

    assert ids_of(seen) == [0, 1, 2, 3, 4, 5, 6, 100]


def test_an_error_in_one_of_several_threads_reaches_the_consumer(files):
    files[3].unlink()

    with (
        QueueReader(files, SLOTS, 4, threads=2) as reader,
        pytest.raises(DataError, match="part-3 cannot be read"),
    ):
        list(reader)


def test_a_crash_of_a_reader_thread_reaches_log_and_consumer(files, caplog):
    class Broken(Files):
        def blocks(self, path, start=0):
            raise RuntimeError("a defect")

    with (
        QueueReader(files, SLOTS, 4, source=Broken()) as reader,
        pytest.raises(RuntimeError, match="a defect"),
    ):
        list(reader)

    assert "thread data-reader-0 crashed" in caplog.text


def test_closing_early_ends_threads_that_wait_for_room(files):
    with QueueReader(files, SLOTS, 1, threads=2, capacity=1) as reader:
        next(iter(reader))

    assert reader_threads() == []


def test_a_reader_that_gives_nothing_is_named_with_its_file(files):
    gate = threading.Event()

    class Stuck(Files):
        def blocks(self, path, start=0):
            gate.wait(30)
            yield from ()

    reader = QueueReader(files, SLOTS, 1, source=Stuck(), wait_timeout_s=0.05)

    with pytest.raises(DeadlineError, match=r"no batch within 0\.05 s; .*part-0"):
        next(iter(reader))
    with pytest.raises(DeadlineError, match=r"did not end within 0 s; it is reading .*part-0"):
        reader.close(timeout_s=0)

    gate.set()
    reader.close()


def test_counters_tell_what_was_read(files):
    counters = Counters()

    with QueueReader(files, SLOTS, 4, counters=counters) as reader:
        list(reader)

    values = counters.snapshot()
    assert values["data_examples"] == 35
    assert values["data_bytes"] == sum(path.stat().st_size for path in files)
    assert values["data_wait_s_events"] == 10


def test_a_producer_waits_for_room():
    items: BoundedQueue[int] = BoundedQueue(capacity=1, producers=1)
    items.put(1)
    waiting = threading.Thread(target=items.put, args=(2,))
    waiting.start()

    first = items.get(10)
    second = items.get(10)

    waiting.join(10)
    assert (first, second) == (1, 2)


def test_a_closed_queue_takes_and_gives_nothing():
    items: BoundedQueue[int] = BoundedQueue(capacity=1, producers=1)
    items.put(1)

    items.close()

    assert items.put(2) is False
    assert items.get(0) is None


def test_a_queue_ends_when_all_producers_are_done():
    items: BoundedQueue[int] = BoundedQueue(capacity=4, producers=2)
    items.producer_done()
    items.put(1)
    items.producer_done()

    assert items.get(0) == 1
    assert items.get(0) is None
