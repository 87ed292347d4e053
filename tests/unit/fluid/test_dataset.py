"""Datasets by Fluid's names: made by the factory, trained by `train_from_dataset`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, DataError

GENERATOR = """
import re
import sys
for line in sys.stdin:  # x0,x1;y
    numbers, y = line.strip().split(";")
    if y == "broken":
        sys.exit("cannot parse " + line)
    print("2", *numbers.split(","), "1", y)
"""

ROWS = [([i * 0.5, -i], 2.0 * i) for i in range(12)]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"part-{k}" for k in range(2)]
    for k, path in enumerate(paths):
        rows = ROWS[6 * k : 6 * k + 6]
        path.write_text("".join(f"{x[0]},{x[1]};{y}\n" for x, y in rows))
    (tmp_path / "generator.py").write_text(GENERATOR)
    return [str(path) for path in paths]


def line() -> tuple[list[fluid.Variable], fluid.Variable]:
    x = fluid.layers.data("x", [2])
    y = fluid.layers.data("y", [1])
    cost = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
    loss = fluid.layers.mean(cost)
    fluid.optimizer.SGD(0.001).minimize(loss)
    return [x, y], loss


def dataset_of(vars: list[fluid.Variable], files: list[str], name: str = "QueueDataset") -> Any:
    dataset = fluid.DatasetFactory().create_dataset(name)
    dataset.set_use_var(vars)
    dataset.set_pipe_command(f"{sys.executable} {Path(files[0]).parent / 'generator.py'}")
    dataset.set_batch_size(4)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    return dataset


def feeds() -> Iterator[dict[str, Any]]:
    for at in range(0, len(ROWS), 4):
        x, y = zip(*ROWS[at : at + 4], strict=True)
        yield {"x": np.array(x, "f4"), "y": np.array(y, "f4").reshape(-1, 1)}


def losses_of(train: Any) -> list[float]:
    """Losses of two passes from the same first values."""
    fluid.Executor().run(fluid.default_startup_program())
    losses: list[float] = []
    for _ in range(2):
        train(lambda values: losses.append(values[0].item()))
    return losses


def test_a_dataset_trains_like_the_same_feeds(files: list[str]) -> None:
    vars, loss = line()
    exe = fluid.Executor()
    dataset = dataset_of(vars, files)

    def by_dataset(tell: Any) -> None:
        exe.train_from_dataset(
            dataset=dataset, fetch_list=[loss], print_period=1, fetch_handler=tell
        )

    def by_feeds(tell: Any) -> None:
        for feed in feeds():
            tell(exe.run(feed=feed, fetch_list=[loss]))

    expected = losses_of(by_feeds)
    assert losses_of(by_dataset) == expected
    assert expected[5] < expected[2]


def test_inference_leaves_the_model_as_it_is(files: list[str]) -> None:
    vars, loss = line()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    before = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())

    exe.infer_from_dataset(dataset=dataset_of(vars, files), fetch_list=[loss])

    after = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    np.testing.assert_array_equal(after, before)


def test_a_generator_that_fails_ends_training_with_its_words(files: list[str]) -> None:
    vars, _ = line()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with open(files[1], "a") as file:
        file.write("0,0;broken\n")

    with pytest.raises(DataError, match=r"part-1 \| .*generator.py: .*exit code 1[\s\S]*cannot"):
        exe.train_from_dataset(dataset=dataset_of(vars, files))


def test_the_factory_makes_a_queue_dataset_unless_told_otherwise() -> None:
    made = fluid.DatasetFactory().create_dataset()

    assert isinstance(made, fluid.dataset.QueueDataset)


@pytest.mark.parametrize("name", ["BoxPSDataset", "queue"])
def test_the_factory_refuses_what_psrt_has_not(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"create_dataset has no {name}; psrt has QueueDataset"):
        fluid.DatasetFactory().create_dataset(name)


# --- in memory ---


def test_memory_trains_like_the_files_do(files: list[str]) -> None:
    vars, loss = line()
    exe = fluid.Executor()
    memory = dataset_of(vars, files, "InMemoryDataset")
    memory.load_into_memory()

    def trained(dataset: Any) -> list[float]:
        def by_dataset(tell: Any) -> None:
            exe.train_from_dataset(
                dataset=dataset, fetch_list=[loss], print_period=1, fetch_handler=tell
            )

        return losses_of(by_dataset)

    assert trained(memory) == trained(dataset_of(vars, files))


def test_memory_is_shuffled_loaded_ahead_and_released(files: list[str]) -> None:
    vars, _ = line()
    dataset = dataset_of(vars, files, "InMemoryDataset")
    dataset.set_queue_num(12)

    dataset.preload_into_memory(2)
    dataset.wait_preload_done()
    dataset.local_shuffle()
    rows = np.concatenate([batch["y"][:, 0] for batch in dataset.batches()]).tolist()
    sizes = (dataset.get_memory_data_size(), dataset.get_shuffle_data_size())
    dataset.release_memory()

    assert sorted(rows) == [y for _, y in ROWS] != rows
    assert (sizes, dataset.get_memory_data_size()) == ((12, 12), 0)


def test_a_global_shuffle_without_fleet_is_a_local_one(files: list[str]) -> None:
    vars, _ = line()
    dataset = dataset_of(vars, files, "InMemoryDataset")
    dataset.load_into_memory()

    dataset.global_shuffle()

    assert dataset.get_shuffle_data_size() == len(ROWS)


def test_sizes_of_all_trainers_are_asked_of_fleet(files: list[str]) -> None:
    class Fleet:
        def sum_records(self, count: int) -> int:
            return count + 1000

    vars, _ = line()
    dataset = dataset_of(vars, files, "InMemoryDataset")
    dataset.load_into_memory()

    sizes = (dataset.get_memory_data_size(Fleet()), dataset.get_shuffle_data_size(Fleet()))

    assert sizes == (1012, 1000)


def test_a_command_to_download_is_kept() -> None:
    dataset = fluid.core.Dataset("MultiSlotDataset")
    assert dataset.get_download_cmd() == "cat"

    dataset.set_download_cmd("fetch -q")

    assert dataset.get_download_cmd() == "fetch -q"


def test_vars_to_merge_mean_any_number_of_records(files: list[str]) -> None:
    vars, _ = line()
    older, newer = (dataset_of(vars, files, "InMemoryDataset") for _ in range(2))

    older.set_merge_by_lineid(vars)
    newer.set_merge_by_lineid(0)

    assert older._merge_size == newer._merge_size == 0
    assert older.texts == newer.texts != ()


def test_settings_can_be_given_by_the_names_of_paddle_2(files: list[str]) -> None:
    vars, _ = line()
    called = dataset_of(vars, files, "InMemoryDataset")
    called.set_merge_by_lineid(3)
    inited = fluid.dataset.InMemoryDataset()

    inited.init(
        batch_size=4,
        thread_num=1,
        use_var=vars,
        pipe_command=f"{sys.executable} {Path(files[0]).parent / 'generator.py'}",
        input_type=0,
        fs_name="",
        fs_ugi="",
        download_cmd="cat",
    )
    inited.update_settings(merge_size=3)
    inited.set_filelist(files)

    assert (inited.desc(), inited.texts) == (called.desc(), called.texts)


@pytest.mark.parametrize("name", ["merge_size", "batchsize", "input_type"])
def test_settings_a_dataset_has_not_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"a QueueDataset has no setting '{name}'"):
        fluid.dataset.QueueDataset().init(**{name: 2})


# --- debug ---


def test_debug_tells_what_ops_and_reading_took(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    vars, _ = line()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    exe.train_from_dataset(dataset=dataset_of(vars, files), debug=True)
    output = capsys.readouterr().out
    exe.train_from_dataset(dataset=dataset_of(vars, files))

    first = output.splitlines()[0].split()
    assert first[:2] == ["op", "layer"]
    for op in ("fc", "square_error_cost", "square_error_cost_grad"):
        assert any(row.split()[0] == op for row in output.splitlines()), output
    assert "3 steps of" in output
    assert re.search(r"reading took \d+\.\d % of \d+\.\d\d s; 12 examples, [\d,]+ a second", output)
    assert capsys.readouterr().out == ""  # later runs are not recorded


def test_replicas_are_watched_too(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    vars, loss = line()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    strategy = fluid.ExecutionStrategy()
    strategy.num_threads = 2
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss.name, exec_strategy=strategy, places=fluid.cpu_places(2)
    )

    exe.infer_from_dataset(dataset=dataset_of(vars, files), fetch_list=[loss], debug=True)
    exe.train_from_dataset(compiled, dataset_of(vars, files), debug=True)

    assert capsys.readouterr().out.count("12 examples") == 2
