"""Whole trainings over real sockets, with pservers and trainers as threads of one process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.config.load import load_job
from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import DataError
from psrt.kernels import jit
from psrt.pserver.serving.service import PserverService
from psrt.rpc.server import Server
from psrt.trainer.inputs import job as jobs
from psrt.trainer.models.saved_model import load
from psrt.trainer.sessions.saved_session import test_saved as evaluate_saved
from psrt.trainer.sessions.session import Session
from psrt.trainer.sessions.session_parts import cluster_for, run_of
from psrt.trainer.sessions.signals import StopSignals
from tests.support.small_job import BATCH, TABLE, TABLE_ROWS, lines, write_files

WAIT_S = 60.0


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    """Daemons do this before they report ready; a first step must not wait for a compiler."""
    jit.warm_up()


def write_job(
    directory: Path, train: list[list[str]], mode: str = "sync", batch: int = BATCH
) -> JobConfig:
    return load_job(str(write_files(directory, train, mode, batch=batch)), environ={}).config


@contextmanager
def pservers(count: int) -> Iterator[tuple[str, ...]]:
    """Endpoints of pservers that live in this process."""
    with ExitStack() as stack:
        servers = []
        for _ in range(count):
            service = PserverService(stripes=2, wait_timeout_s=WAIT_S)
            server = Server(service.handle)
            service.start()
            server.start()
            stack.callback(service.stop)
            stack.callback(server.stop, 1.0)
            servers.append(server)
        yield tuple(server.endpoint for server in servers)


def run_trainers(
    config: JobConfig, count: int, save: str = "", cpu_num: int = 1, **more: Any
) -> list[dict[str, Any]]:
    """Train with two pservers and `count` trainers; their reports in order of trainer id.

    `more` are other settings of each.
    """
    with pservers(2) as endpoints, ThreadPoolExecutor(count) as threads:
        given = {"endpoints": endpoints, "trainers": count, "save": save, "cpu_num": cpu_num}
        settings = TrainerConfig(**given, **more)
        running = [
            threads.submit(run_trainer, config, dataclasses.replace(settings, trainer_id=i))
            for i in range(count)
        ]
        return [trainer.result(WAIT_S) for trainer in running]


def run_trainer(config: JobConfig, settings: TrainerConfig) -> dict[str, Any]:
    """Run `psrt trainer` without its signal handlers, which need a main thread."""
    job = jobs.load_job(config)
    with (
        closing(run_of(settings, job)) as run,
        closing(cluster_for(settings, job, run, print)) as cluster,
    ):
        session = Session(settings, job, run, cluster, print)
        session.train(StopSignals())
        session.save_and_test()
        session.leave(0)
    return session.facts(0)


@pytest.mark.parametrize("mode", ["sync", "async", "geo"])
def test_two_trainers_learn_what_was_planted(tmp_path: Path, mode: str) -> None:
    config = write_job(tmp_path, [lines(6000, seed=1), lines(6000, seed=2)], mode)

    reports = run_trainers(config, 2)

    assert [report["examples"] for report in reports] == [6000, 6000]
    assert reports[0]["test_examples"] == 1000
    assert reports[0]["test_auc"] > 0.88  # the planted model itself reaches 0.91
    assert "test_auc" not in reports[1]


@pytest.mark.parametrize("rows", [(200, 800), (800, 200)])
@pytest.mark.parametrize("mode", ["sync", "async", "geo"])
def test_trainers_with_unequal_data_do_not_hang(
    tmp_path: Path, rows: tuple[int, int], mode: str
) -> None:
    config = write_job(tmp_path, [lines(n, seed=n) for n in rows], mode)

    reports = run_trainers(config, 2, save=str(tmp_path / "model"))

    assert [report["examples"] for report in reports] == list(rows)
    assert load(tmp_path / "model").manifest.rows(TABLE) == TABLE_ROWS


def test_a_test_that_fails_costs_no_model(tmp_path: Path) -> None:
    config = write_job(tmp_path, [lines(1000, seed=1)])
    (tmp_path / "test-0").write_text("1 0 2 7\n")

    with pytest.raises(DataError, match="test-0, line 1"):
        run_trainers(config, 1, save=str(tmp_path / "model"))

    assert load(tmp_path / "model").manifest.rows(TABLE) == TABLE_ROWS


def test_two_synchronous_trainers_equal_one_with_the_double_batch(tmp_path: Path) -> None:
    both = lines(20 * BATCH, seed=5)
    halves = [
        [line for start in range(0, len(both), 2 * BATCH) for line in both[start + at :][:BATCH]]
        for at in (0, BATCH)
    ]
    two = write_job(tmp_path / "two", halves)
    one = write_job(tmp_path / "one", [both], batch=2 * BATCH)

    run_trainers(two, 2, save=str(tmp_path / "of-two"))
    run_trainers(one, 1, save=str(tmp_path / "of-one"))

    saved, expected = load(tmp_path / "of-two"), load(tmp_path / "of-one")
    for name, values in expected.dense.items():
        np.testing.assert_allclose(saved.dense[name], values, rtol=1e-4, atol=1e-6)
    ids = {TABLE: np.arange(150, dtype=np.int64)}
    np.testing.assert_allclose(
        saved.pull_rows(ids)[TABLE], expected.pull_rows(ids)[TABLE], rtol=1e-4, atol=1e-6
    )


def test_a_saved_model_tests_as_it_did_when_it_was_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_job(tmp_path, [lines(2000, seed=1)])
    (report,) = run_trainers(config, 1, save=str(tmp_path / "model"))
    settings = TrainerConfig(evaluate=str(tmp_path / "model"), report=str(tmp_path / "report.json"))

    code = evaluate_saved(settings, config, print)

    again = json.loads((tmp_path / "report.json").read_text())
    assert code == 0
    assert again["test_examples"] == 1000
    assert again["test_auc"] == pytest.approx(report["test_auc"], abs=1e-6)
    assert again["test_loss"] == pytest.approx(report["test_loss"], abs=1e-6)
    assert "test  1,000 examples  loss" in capsys.readouterr().out
