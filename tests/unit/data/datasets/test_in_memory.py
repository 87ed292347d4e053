"""InMemoryDataset: loading, orders, exchanges, sizes, errors; files as users have them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import psrt
from psrt.core.errors import ConfigError, DataError, DeadlineError
from psrt.data.slots import Slot
from psrt.data.sources.sources import Files

SLOTS = [Slot("id", "uint64"), Slot("x", "float", 1)]
FILES, LINES = 5, 7


@pytest.fixture
def files(tmp_path):
    """File f holds ids 100 f … 100 f + 6, each twice, and x = id / 2."""
    paths = [tmp_path / f"part-{f}" for f in range(FILES)]
    for f, path in enumerate(paths):
        ids = range(100 * f, 100 * f + LINES)
        path.write_text("".join(f"2 {i} {i} 1 {i / 2}\n" for i in ids))
    return paths


ALL_IDS = [100 * f + i for f in range(FILES) for i in range(LINES)]


def loaded(files, **settings) -> psrt.InMemoryDataset:
    dataset = psrt.InMemoryDataset(SLOTS, files=files, **settings)
    dataset.load_into_memory()
    return dataset


def ids_of(dataset: psrt.InMemoryDataset) -> list[int]:
    return [i for batch in dataset.batches() for i in batch["id"].values[::2].tolist()]


def pairs_of(dataset: psrt.InMemoryDataset) -> list[tuple[int, float]]:
    pairs = []
    for batch in dataset.batches():
        pairs += zip(batch["id"].values[::2].tolist(), batch["x"][:, 0].tolist(), strict=True)
    return pairs


def loader_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("data-")]


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_records_are_in_the_order_of_files_and_lines(files, threads):
    dataset = loaded(files, threads=threads, batch_size=4)

    assert ids_of(dataset) == ALL_IDS
    assert [len(batch["x"]) for batch in dataset.batches()] == [4] * 8 + [3]
    assert loader_threads() == []


def test_memory_is_read_again_and_again_without_the_files(files):
    dataset = loaded(files)
    for path in files:
        path.unlink()

    assert ids_of(dataset) == ids_of(dataset) == ALL_IDS


def test_a_shuffle_is_a_permutation_that_seed_and_number_repeat(files):
    one, again, other = (loaded(files, threads=2, seed=seed) for seed in (7, 7, 8))

    orders = []
    for dataset in (one, again, other):
        dataset.local_shuffle()
        first = ids_of(dataset)
        dataset.local_shuffle()
        orders.append((first, ids_of(dataset)))

    assert orders[0] == orders[1]
    assert sorted(orders[0][0]) == sorted(orders[0][1]) == ALL_IDS
    assert len({tuple(order) for pair in (*orders[::2], (ALL_IDS,)) for order in pair}) == 5


def test_a_shuffle_with_a_seed_of_its_own_depends_on_nothing_before(files):
    fresh, used = loaded(files), loaded(files, seed=3)
    used.slots_shuffle(["x"])
    used.slots_shuffle([])

    fresh.local_shuffle(seed=5)
    used.local_shuffle(seed=5)

    assert ids_of(fresh) == ids_of(used) != ALL_IDS


def test_records_stay_whole_when_shuffled(files):
    dataset = loaded(files)

    dataset.local_shuffle()

    assert all(x == i / 2 for i, x in pairs_of(dataset))


def test_a_pass_under_way_keeps_its_order(files):
    dataset = loaded(files, batch_size=10)
    batches = dataset.batches()
    first = next(batches)

    dataset.local_shuffle()

    rest = [batch["id"].values for batch in batches]
    assert np.concatenate([first["id"].values, *rest])[::2].tolist() == ALL_IDS


def test_loading_can_shuffle(files):
    dataset = psrt.InMemoryDataset(SLOTS, files=files)

    dataset.load_into_memory(is_shuffle=True)

    assert sorted(ids_of(dataset)) == ALL_IDS != ids_of(dataset)


def test_slots_are_exchanged_between_records_and_given_back(files):
    dataset = loaded(files)
    as_read = pairs_of(dataset)

    dataset.slots_shuffle(["x"])
    exchanged = pairs_of(dataset)
    dataset.slots_shuffle(["id"])
    others = pairs_of(dataset)
    dataset.slots_shuffle([])

    assert [i for i, _ in exchanged] == ALL_IDS
    assert sorted(x for _, x in exchanged) == [x for _, x in as_read]
    assert exchanged != as_read
    assert [x for _, x in others] == [x for _, x in as_read]
    assert pairs_of(dataset) == as_read


def test_slots_exchanged_together_stay_together(files):
    dataset = loaded(files)

    dataset.slots_shuffle(["id", "x"])

    assert all(x == i / 2 for i, x in pairs_of(dataset))


def test_sizes_and_memory_follow_the_records(files):
    dataset = psrt.InMemoryDataset(SLOTS, files=files)
    empty = (dataset.get_memory_data_size(), dataset.memory_bytes)

    dataset.load_into_memory()
    next(dataset.batches())
    loaded_bytes = dataset.memory_bytes
    before = (dataset.get_memory_data_size(), dataset.get_shuffle_data_size())
    dataset.local_shuffle()
    after = (dataset.get_memory_data_size(), dataset.get_shuffle_data_size())
    shuffled_bytes = dataset.memory_bytes
    dataset.release_memory()

    records = FILES * LINES
    assert loaded_bytes == records * (16 + 4 + 8 + 1) + 8
    assert shuffled_bytes == loaded_bytes + 8 * records
    assert (empty, before, after) == ((0, 0), (records, 0), (records, records))
    assert (dataset.get_memory_data_size(), dataset.memory_bytes) == (0, 0)


def test_the_next_files_are_loaded_while_the_last_are_trained_on(files):
    dataset = loaded(files[:1])

    dataset.set_filelist(files[1:2])
    dataset.preload_into_memory(thread_num=2)
    meanwhile = ids_of(dataset)
    dataset.wait_preload_done()

    assert meanwhile == ALL_IDS[:LINES]
    assert ids_of(dataset) == ALL_IDS[LINES : 2 * LINES]


def test_a_malformed_line_ends_loading_and_leaves_what_was_there(files):
    dataset = loaded(files[:1], threads=2)
    files[3].write_text("1 0 1 0\n1 x 1 0\n")
    dataset.set_filelist(files)

    with pytest.raises(DataError, match="part-3, line 2, column 3, slot 'id'"):
        dataset.load_into_memory()

    assert ids_of(dataset) == ALL_IDS[:LINES]
    assert loader_threads() == []


def test_a_program_that_fails_ends_loading(files):
    dataset = psrt.InMemoryDataset(SLOTS, files=files, threads=2, pipe_command="cat; exit 5")

    with pytest.raises(DataError, match=r"part-\d \| cat; exit 5: the program ended with exit co"):
        dataset.load_into_memory()


def test_a_file_that_gives_nothing_is_named_by_the_deadline(files, monkeypatch):
    gate = threading.Event()

    def stuck(self, path, start=0):
        gate.wait(30)
        yield from ()

    monkeypatch.setattr(Files, "blocks", stuck)
    monkeypatch.setattr(Files, "stop", lambda self: gate.set())
    dataset = psrt.InMemoryDataset(SLOTS, files=files[:1], wait_timeout_s=0.05)

    with pytest.raises(DeadlineError, match=r"nothing was loaded within 0.05 s; .*part-0"):
        dataset.load_into_memory()

    assert loader_threads() == []


def test_a_crash_of_a_loading_thread_reaches_the_log_and_who_waits(files, monkeypatch, caplog):
    def broken(self, path, start=0):
        raise RuntimeError("a defect")

    monkeypatch.setattr(Files, "blocks", broken)

    with pytest.raises(RuntimeError, match="a defect"):
        loaded(files)

    assert "thread data-loader-0 crashed" in caplog.text


def test_memory_may_be_released_while_files_are_loaded(files):
    dataset = psrt.InMemoryDataset(SLOTS, files=files)
    dataset.preload_into_memory()

    dataset.release_memory()

    assert loader_threads() == []
    with pytest.raises(ConfigError, match="not loading"):
        dataset.wait_preload_done()


def test_what_comes_too_early_or_twice_is_refused(files):
    dataset = psrt.InMemoryDataset(SLOTS, files=files)

    for call in (dataset.local_shuffle, lambda: next(dataset.batches())):
        with pytest.raises(ConfigError, match=r"nothing in memory.*load_into_memory"):
            call()
    dataset.preload_into_memory()
    with pytest.raises(ConfigError, match="loading already"):
        dataset.preload_into_memory()
    dataset.wait_preload_done()
    with pytest.raises(ConfigError, match=r"no slot 'y'.*id, x"):
        dataset.slots_shuffle(["x", "y"])


def test_empty_files_are_no_records(tmp_path):
    (tmp_path / "empty").touch()

    dataset = loaded([tmp_path / "empty"])
    dataset.local_shuffle()

    assert list(dataset.batches()) == []


def test_counters_tell_what_was_read_and_handed_out(files):
    dataset = loaded(files, threads=2)

    ids_of(dataset), ids_of(dataset)

    counted = dataset.counters.snapshot()
    assert counted["data_bytes"] == sum(path.stat().st_size for path in files)
    assert counted["data_examples"] == 2 * len(ALL_IDS)


def test_a_pass_can_begin_at_any_record(files):
    dataset = loaded(files, batch_size=4)
    dataset.local_shuffle()
    all_ids = ids_of(dataset)

    rest = [i for batch in dataset.batches(first=10) for i in batch["id"].values[::2].tolist()]

    assert rest == all_ids[10:]
