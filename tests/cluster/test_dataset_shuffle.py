"""`InMemoryDataset.global_shuffle` through connected executors, in every mode; and without any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, UnavailableError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.core.tensors import Ragged
from psrt.data.datasets.scattering import Scattering
from psrt.data.slots import Slot
from psrt.partition.transpiler import DistributeTranspiler, TrainerProgram
from psrt.trainer.training.connected import ConnectedExecutor
from tests.support.cluster import in_threads
from tests.support.live_pservers import live_pservers

SLOTS = [Slot("id", "uint64"), Slot("x", "float", 1)]
LINES = 60


def part_of(trainer: int, endpoint: str, mode: CommunicationMode) -> TrainerProgram:
    with psrt.program() as program:
        loss = layers.mean(layers.fc(layers.data("x", shape=(1,)), 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    transpiler = DistributeTranspiler()
    transpiler.transpile(program, trainer, [endpoint], 2, mode)
    return transpiler.get_trainer_program()


def dataset_of(path: Path, lines: Sequence[str], **settings: int) -> psrt.InMemoryDataset:
    path.write_text("".join(lines))
    return psrt.InMemoryDataset(SLOTS, files=[path], **settings)


def ids_of(dataset: psrt.InMemoryDataset) -> list[int]:
    return [i for batch in dataset.batches() for i in cast("Ragged", batch["id"]).values.tolist()]


def shuffled_by_two(
    datasets: Sequence[psrt.InMemoryDataset], mode: CommunicationMode, times: int = 1
) -> None:
    with live_pservers(1) as (pserver,):

        def work(trainer: int) -> Callable[[], None]:
            def shuffle() -> None:
                part = part_of(trainer, pserver.endpoint, mode)
                with ConnectedExecutor(part, call_timeout_s=30.0) as executor:
                    for _ in range(times):
                        datasets[trainer].global_shuffle(executor)

            return shuffle

        in_threads([work(0), work(1)])


@pytest.mark.parametrize("mode", [Sync(), HalfAsync(), Async(), Ssp(1), Geo(3)], ids=repr)
def test_every_record_is_at_one_trainer_once(tmp_path: Path, mode: CommunicationMode) -> None:
    lines = [f"1 {i} 1 {i / 2}\n" for i in range(2 * LINES)]
    halves = [lines[:LINES], lines[LINES:]]
    datasets = [dataset_of(tmp_path / f"{t}", half, seed=4) for t, half in enumerate(halves)]
    for dataset in datasets:
        dataset.load_into_memory()

    shuffled_by_two(datasets, mode, times=2)

    found = [ids_of(dataset) for dataset in datasets]
    assert sorted(found[0] + found[1]) == list(range(2 * LINES))
    assert all(min(ids) < LINES <= max(ids) for ids in found)
    assert sum(dataset.get_memory_data_size() for dataset in datasets) == 2 * LINES


def test_lines_of_one_id_that_two_trainers_read_are_merged(tmp_path: Path) -> None:
    datasets = []
    for trainer in range(2):
        lines = [f"1 line-{n} 1 {2 * n + trainer} 1 0.5\n" for n in range(LINES)]
        dataset = dataset_of(tmp_path / f"{trainer}", lines)
        dataset.set_merge_by_lineid(2)
        dataset.load_into_memory()
        datasets.append(dataset)

    shuffled_by_two(datasets, Async())

    found = [ids_of(dataset) for dataset in datasets]
    assert sorted(found[0] + found[1]) == list(range(2 * LINES))
    assert sum(dataset.get_memory_data_size() for dataset in datasets) == LINES


def test_without_other_trainers_it_is_a_local_shuffle(tmp_path: Path) -> None:
    lines = [f"1 {i} 1 0\n" for i in range(LINES)]
    one, other = (dataset_of(tmp_path / "lines", lines, seed=3) for _ in range(2))
    one.load_into_memory()
    other.load_into_memory()

    one.global_shuffle()
    other.local_shuffle()

    assert ids_of(one) == ids_of(other) != list(range(LINES))


def test_an_exchange_that_fails_leaves_nothing_to_train_on(tmp_path: Path) -> None:
    class Broken:
        def exchange_records(self, scattering: Scattering) -> None:
            raise UnavailableError("the network is gone.")

    dataset = dataset_of(tmp_path / "lines", ["1 1 1 0\n"])
    dataset.load_into_memory()

    with pytest.raises(UnavailableError):
        dataset.global_shuffle(Broken())  # type: ignore[arg-type]

    assert dataset.get_memory_data_size() == 0
    with pytest.raises(ConfigError, match="nothing in memory"):
        dataset.local_shuffle()


def test_a_batch_of_no_records_is_refused() -> None:
    with pytest.raises(ConfigError, match="fleet_send_batch_size is 1 or more, not 0"):
        psrt.InMemoryDataset(SLOTS).set_fleet_send_batch_size(0)
