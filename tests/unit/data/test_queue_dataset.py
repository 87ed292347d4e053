"""QueueDataset: settings, passes, and what it refuses."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.data.slots import Slot, slot_of

SLOTS = [Slot("id", "uint64"), Slot("x", "float", 2)]


@pytest.fixture
def files(tmp_path):
    """Three files of 4 lines; file f holds ids 10 f … 10 f + 3."""
    for f in range(3):
        lines = [f"1 {10 * f + i} 2 0.5 {i}\n" for i in range(4)]
        (tmp_path / f"part-{f}").write_text("".join(lines))
    return tmp_path


ALL_IDS = [10 * f + i for f in range(3) for i in range(4)]


def ids_of(dataset: psrt.QueueDataset) -> list[int]:
    return np.concatenate([batch["id"].values for batch in dataset.batches()]).tolist()


def test_arguments_and_setters_say_the_same(files):
    given = psrt.QueueDataset(
        SLOTS, files=[files / "part-*"], batch_size=3, threads=1, pipe_command="cat"
    )
    told = psrt.QueueDataset()
    told.set_use_var(SLOTS)
    told.set_filelist([str(files / "part-*")])
    told.set_batch_size(3)
    told.set_thread(1)
    told.set_pipe_command("cat")

    assert told.desc() == given.desc()
    assert ids_of(told) == ids_of(given) == ALL_IDS


def test_each_pass_reads_the_files_anew(files):
    dataset = psrt.QueueDataset(SLOTS, files=[files / "part-0"])
    first = ids_of(dataset)

    (files / "part-0").write_text("1 7 2 0 0\n")

    assert (first, ids_of(dataset)) == ([0, 1, 2, 3], [7])


def test_several_threads_read_every_line_once(files):
    dataset = psrt.QueueDataset(SLOTS, files=[files / "part-*"], batch_size=3, threads=3)

    assert sorted(ids_of(dataset)) == ALL_IDS


def test_data_vars_declare_slots_and_shapes(files):
    with psrt.program():
        vars = [layers.data("id", dtype="int64", ragged=True), layers.data("x", (2, 1))]
    dataset = psrt.QueueDataset(vars, files=[files / "part-0"])

    [batch] = dataset.batches()

    assert [slot_of(var) for var in vars] == SLOTS
    assert isinstance(batch["id"], Ragged)
    assert batch["x"].shape == (4, 2, 1)


def test_files_go_through_a_program(files):
    dataset = psrt.QueueDataset(
        SLOTS, files=[files / "part-*"], threads=2, pipe_command="sed '/^1 1/d'"
    )

    assert sorted(ids_of(dataset)) == [0, 2, 3, 20, 21, 22, 23]


def test_leaving_a_pass_early_ends_its_threads(files):
    batches = psrt.QueueDataset(
        SLOTS, files=[files / "part-*"], batch_size=1, threads=2, pipe_command="cat -"
    ).batches()
    next(batches)

    batches.close()

    assert [t.name for t in threading.enumerate() if t.name.startswith("data-")] == []


def test_counters_go_on_over_passes(files):
    dataset = psrt.QueueDataset(SLOTS, files=[files / "part-*"])

    ids_of(dataset), ids_of(dataset)

    assert dataset.counters.snapshot()["data_examples"] == 2 * len(ALL_IDS)


@pytest.mark.parametrize("method", ["local_shuffle", "global_shuffle"])
def test_a_stream_is_not_shuffled(method):
    with pytest.raises(ConfigError, match=rf"{method} .* QueueDataset.*InMemoryDataset shuffles"):
        getattr(psrt.QueueDataset(), method)()


def test_what_is_missing_is_said_when_it_is_read(files):
    with pytest.raises(ConfigError, match=r"no slots.*set_use_var"):
        next(psrt.QueueDataset(files=[files / "part-0"]).batches())
    with pytest.raises(ConfigError, match=r"no files.*set_filelist"):
        next(psrt.QueueDataset(SLOTS).batches())
    with pytest.raises(DataError, match=r"nothing-\* matches no file"):
        next(psrt.QueueDataset(SLOTS, files=[files / "nothing-*"]).batches())


@pytest.mark.parametrize(
    ("setter", "value", "message"),
    [
        ("set_batch_size", 0, "batch size .* 1 or more, not 0"),
        ("set_thread", -1, "threads .* 1 or more, not -1"),
        ("set_batch_size", 10**20, "batch size .* at most 2,147,483,647, not 100,000"),
        ("set_batch_size", 1.5, r"batch size .* an integer, not 1\.5"),
        ("set_thread", "3", "threads .* an integer, not '3'"),
        ("set_use_var", ["ids"], r"set_use_var was given \['ids'\], expected a list of slots"),
        ("set_use_var", 5, "set_use_var was given 5, expected a list of slots"),
        ("set_filelist", "part-0", "expected a list"),
        ("set_filelist", None, "set_filelist was given None, expected a list"),
        ("set_pipe_command", None, "pipe command is None"),
        ("set_pipe_command", " ", "empty"),
        ("set_download_cmd", "wget", "does not download"),
    ],
)
def test_settings_without_a_meaning_are_refused(setter, value, message):
    with pytest.raises(ConfigError, match=message):
        getattr(psrt.QueueDataset(), setter)(value)


def test_a_file_system_is_refused_with_what_there_is_instead():
    with pytest.raises(ConfigError, match=r"hdfs://a.*URLs into the file list"):
        psrt.QueueDataset().set_hdfs_config("hdfs://a", "user,password")


def test_a_pass_goes_on_where_another_was_left(files):
    dataset = psrt.QueueDataset(SLOTS, files=[files / "part-*"], batch_size=5)
    batches = dataset.batches()
    first = next(batches)["id"].values.tolist()
    place = dataset.place
    batches.close()

    rest = np.concatenate([batch["id"].values for batch in dataset.batches(place)]).tolist()

    assert first + rest == ALL_IDS
