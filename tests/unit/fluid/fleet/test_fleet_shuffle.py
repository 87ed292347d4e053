"""`dataset.global_shuffle(fleet)`: two workers, their datasets and a server in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psrt.fluid as fluid
from psrt.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler
from tests.support.cluster import in_threads
from tests.support.scripts import endpoints

LINES = 40
DEADLINE_S = 60.0


def member(role: Role, pservers: list[str], index: int = 0) -> tuple[Any, Any]:
    """One process's fleet and its data var."""
    made = DistributedTranspiler()
    made.init(UserDefinedRoleMaker(index, role, 2, pservers))
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x = fluid.layers.data(name="x", shape=[1], dtype="float32")
        loss = fluid.layers.mean(fluid.layers.fc(input=x, size=1))
        made.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    return made, x


@contextmanager
def served(pservers: list[str]) -> Iterator[None]:
    server, _ = member(Role.SERVER, pservers)
    thread = threading.Thread(target=server.run_server, daemon=True)
    thread.start()
    yield
    thread.join(DEADLINE_S)
    assert not thread.is_alive(), "the server still runs though its workers have stopped"


def loaded(x: Any, path: Path, first: int) -> Any:
    path.write_text("".join(f"1 {n}\n" for n in range(first, first + LINES)))
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var([x])
    dataset.set_filelist([str(path)])
    dataset.set_fleet_send_batch_size(8)
    dataset.load_into_memory()
    return dataset


def test_workers_shuffle_their_datasets_through_fleet(tmp_path: Path) -> None:
    pservers = endpoints(1)
    with served(pservers):
        workers = [member(Role.WORKER, pservers, index) for index in range(2)]
        sizes: dict[int, list[int]] = {}
        datasets = [loaded(x, tmp_path / f"{i}", i * LINES) for i, (_, x) in enumerate(workers)]

        def work(index: int) -> Callable[[], None]:
            def shuffle_and_stop() -> None:
                dataset, fleet = datasets[index], workers[index][0]
                sizes[index] = [dataset.get_memory_data_size(fleet)]
                dataset.global_shuffle(fleet, thread_num=12)
                sizes[index] += [dataset.get_shuffle_data_size(fleet)]
                fleet.stop_worker()

            return shuffle_and_stop

        in_threads([work(0), work(1)])

    found = [
        [value for batch in dataset.batches() for value in batch["x"].ravel().tolist()]
        for dataset in datasets
    ]
    assert sorted(found[0] + found[1]) == list(range(2 * LINES))
    assert all(min(rows) < LINES <= max(rows) for rows in found)
    assert all(rows != sorted(rows) for rows in found)
    assert sizes == {0: [2 * LINES, 2 * LINES], 1: [2 * LINES, 2 * LINES]}
    assert sum(dataset.get_shuffle_data_size() for dataset in datasets) == 2 * LINES
