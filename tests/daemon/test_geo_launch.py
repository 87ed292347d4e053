"""A Geo job by `psrt launch`: real daemons, trainer processes, signals."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from psrt.trainer.models.saved_model import load
from tests.support.processes import psrt
from tests.support.pserver import daemon
from tests.support.small_job import TABLE, TABLE_ROWS, lines, write_files

WAIT_S = 60.0


def test_a_geo_job_trains_tests_and_saves_what_both_trainers_learned(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(6000, seed=1), lines(4000, seed=2)], "geo")
    job.write_text(job.read_text().replace('"geo"', '"geo"\nupdate_frequency = 20'))
    report, model = tmp_path / "report.json", tmp_path / "model"
    flags = ("--pservers", "2", "--trainers", "2", "--log-dir", str(tmp_path / "logs"))

    with psrt(
        tmp_path / "log", "launch", *flags, "--report", str(report), "--save", str(model), str(job)
    ) as launch:
        code = launch.exit_code()

    assert code == 0, launch.output
    told = json.loads(report.read_text())
    assert told["examples"] == 10_000
    assert told["auc"] > 0.88  # the planted model itself reaches 0.91
    assert load(model).manifest.rows(TABLE) == TABLE_ROWS


def test_a_geo_trainer_that_is_asked_to_end_leaves_the_others_training(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(2000, seed=1), lines(2000, seed=2)], "geo", epochs=30)
    with daemon(tmp_path) as pserver:
        where = ("--endpoints", pserver.endpoint, "--trainers", "2")
        with (
            psrt(tmp_path / "0", "trainer", *where, "--trainer-id", "0", str(job)) as stays,
            psrt(tmp_path / "1", "trainer", *where, "--trainer-id", "1", str(job)) as leaves,
        ):
            leaves.wait_for("step ")
            leaves.process.send_signal(signal.SIGTERM)

            assert leaves.exit_code() == 128 + signal.SIGTERM, leaves.output
            assert stays.exit_code() == 0, stays.output
        assert pserver.exit_code() == 0, pserver.log.read_text()


def test_local_training_ignores_that_the_job_is_geo(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(1000, seed=1)], "geo")
    report = tmp_path / "report.json"

    with psrt(tmp_path / "log", "trainer", "--local", "--report", str(report), str(job)) as alone:
        code = alone.exit_code()

    assert code == 0, alone.output
    assert json.loads(report.read_text())["mode"] == "local"
