"""Workers save tables that lie on servers, and servers begin with the cuts of an earlier job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt
import psrt.fluid as fluid
from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.fluid.incubate.fleet.base.role_maker import Role
from tests.unit.fluid.fleet.test_fleet import DEADLINE_S, endpoints, of_role

STEPS, CUT_AFTER = 6, 4


def network() -> tuple[Any, Any]:
    """The prediction and the loss of a model with a distributed table and dropout."""
    ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    rows = fluid.layers.embedding(input=ids, size=[50, 4], is_sparse=True, is_distributed=True)
    hidden = fluid.layers.dropout(fluid.layers.fc(input=rows, size=8), 0.3)
    predicted = fluid.layers.fc(input=hidden, size=1)
    return predicted, fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))


def minimized(made: Any) -> tuple[Any, Any]:
    predicted, loss = network()
    made.distributed_optimizer(fluid.optimizer.Adagrad(0.1)).minimize(loss)
    return predicted, loss


def batch(step: int) -> dict[str, np.ndarray]:
    ids = np.random.default_rng(step).integers(0, 50, (16, 1))
    return {"ids": ids, "y": (ids % 3).astype(np.float32)}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with own_programs():
        yield


@contextmanager
def own_programs() -> Iterator[None]:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield


@contextmanager
def served(pservers: list[str], begin_with: str = "") -> Iterator[None]:
    """A server for each endpoint, in a thread; all must end by themselves."""
    threads = []
    for index in range(len(pservers)):
        server = of_role(Role.SERVER, pservers, index=index)
        with own_programs():
            minimized(server)
        server.init_server(begin_with)
        threads.append(threading.Thread(target=server.run_server, daemon=True))
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a server still runs though its worker has stopped"


def train(steps: range, begin_with: str = "", save: Path | None = None) -> list[float]:
    """Losses of a worker's steps over two servers; saves its parameters before it stops."""
    pservers = endpoints(2)
    with served(pservers, begin_with), own_programs():
        worker = of_role(Role.WORKER, pservers)
        _, loss = minimized(worker)
        exe = fluid.Executor()
        exe.run(worker.startup_program)
        program = worker.main_program
        losses = [float(exe.run(program, batch(n), [loss])[0][0]) for n in steps]
        if save is not None:
            worker.save_persistables(exe, str(save))
        worker.stop_worker()
    return losses


def test_servers_begin_with_the_cut_at_the_end_of_an_earlier_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(range(STEPS))
    cuts = str(tmp_path / "cuts")
    monkeypatch.setenv("PSRT_PSERVER_CHECKPOINT_DIR", cuts)

    first = train(range(CUT_AFTER))
    monkeypatch.delenv("PSRT_PSERVER_CHECKPOINT_DIR")
    second = train(range(CUT_AFTER, STEPS), begin_with=cuts)

    assert first + second == whole
    assert [cut.round for cut in psrt.checkpoint.cuts(cuts)] == [CUT_AFTER, STEPS]


def test_a_directory_without_a_cut_is_no_start_of_a_server(tmp_path: Path) -> None:
    server = of_role(Role.SERVER, endpoints(1))
    minimized(server)

    with pytest.raises(DataError, match="cannot be read: No such file"):
        server.init_server(str(tmp_path))


def test_a_worker_saves_distributed_tables_and_another_process_reads_them(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    train(range(STEPS), save=saved)

    predicted, _ = network()
    program, exe = fluid.default_main_program().clone(for_test=True), fluid.Executor()
    fluid.io.load_persistables(exe, saved, program)
    (found,) = exe.run(program, batch(0), [predicted])

    model = psrt.load_inference_model(saved, fetches=[predicted.name])
    (expected,) = model.run({"ids": batch(0)["ids"]})
    np.testing.assert_array_equal(found, expected)
    assert np.std(found) > 0.1, "it has learned"


def test_a_second_save_takes_the_place_of_the_first_or_leaves_it(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    train(range(1), save=saved)
    before = (saved / "manifest.json").read_text()

    train(range(2), save=saved)

    assert (saved / "manifest.json").read_text() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


def test_a_directory_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(ConfigError, match="is not a saved model; psrt will not replace it"):
        save_on_a_worker(tmp_path)

    assert (tmp_path / "notes.txt").read_text() == "mine"


def save_on_a_worker(directory: Path, **options: Any) -> None:
    """Save after one step; the worker stops also if that fails."""
    pservers = endpoints(1)
    with served(pservers), own_programs():
        worker = of_role(Role.WORKER, pservers)
        _, loss = minimized(worker)
        exe = fluid.Executor()
        exe.run(worker.startup_program)
        exe.run(worker.main_program, batch(0), [loss])
        try:
            fluid.io.save_persistables(exe, directory, worker.main_program, **options)
        finally:
            worker.stop_worker()


def test_rows_do_not_go_into_one_file(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="its rows do not go into the one file all"):
        save_on_a_worker(tmp_path, filename="all")


def test_a_program_that_reached_no_pservers_has_no_rows_to_save(tmp_path: Path) -> None:
    network()

    with pytest.raises(ProgramError, match="this program has reached none"):
        fluid.io.save_persistables(fluid.Executor(), tmp_path / "saved")


def test_a_model_of_another_shape_is_refused_by_the_name_of_the_parameter(tmp_path: Path) -> None:
    train(range(1), save=tmp_path / "saved")
    ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
    fluid.layers.embedding(input=ids, size=[50, 5], is_sparse=True, is_distributed=True)

    with pytest.raises(DataError, match=r"embedding_0.w_0 has shape \(5,\), but .* \(4,\)"):
        fluid.io.load_persistables(fluid.Executor(), tmp_path / "saved")
