"""`psrt trainer` as a process against real daemons: where settings come from, how it ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from tests.support.processes import DEADLINE_S, psrt
from tests.support.pserver import daemon
from tests.support.small_job import BATCH, TEST_ROWS, lines, write_files


@dataclass(frozen=True)
class Trained:
    """A job that was trained once, with flags; what it left behind."""

    job: Path
    model: Path
    report: dict[str, Any]
    output: str
    exit_codes: tuple[int, ...]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    directory = tmp_path_factory.mktemp("trained")
    job = write_files(directory, [lines(60 * BATCH, seed=1)], epochs=2)
    model, report = directory / "model", directory / "report.json"
    with two_pservers(directory) as (endpoints, processes):
        where = "--endpoints", ",".join(endpoints), "--trainers", "1", "--trainer-id", "0"
        outputs = "--save", str(model), "--report", str(report)
        with psrt(directory / "trainer.log", "trainer", *where, *outputs, str(job)) as trainer:
            codes = trainer.exit_code(), *(process.wait(DEADLINE_S) for process in processes)
            output = trainer.output
    return Trained(job, model, json.loads(report.read_text()), output, codes)


@contextmanager
def two_pservers(directory: Path) -> Iterator[tuple[list[str], list[Any]]]:
    """Endpoints and processes."""
    with ExitStack() as stack:
        daemons = []
        for number in range(2):
            place = directory / f"pserver-{number}"
            place.mkdir()
            daemons.append(stack.enter_context(daemon(place)))
        yield [d.endpoint for d in daemons], [d.process for d in daemons]


def exit_code(code: ErrorCode) -> int:
    return CATALOGUE[code].exit_code


def test_a_trainer_trains_from_flags_and_the_pservers_end_with_it(trained: Trained) -> None:
    assert trained.exit_codes == (0, 0, 0), trained.output
    assert "job small: trainer 0 of 1, 2 pservers, mode sync, batch 32, 2 epochs" in trained.output
    assert trained.report["examples"] == 2 * 60 * BATCH
    assert trained.report["pservers"] == 2
    assert trained.report["test_examples"] == TEST_ROWS
    assert trained.report["test_auc"] > 0.85  # the planted model itself reaches 0.91
    assert f"saved {trained.model}" in trained.output


def test_a_saved_model_gives_the_numbers_that_training_reported(
    trained: Trained, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    asked = "--evaluate", str(trained.model), "--report", str(report)

    with psrt(tmp_path / "log", "trainer", *asked, str(trained.job)) as trainer:
        code = trainer.exit_code()

    assert code == 0, trainer.output
    again = json.loads(report.read_text())
    assert again["test_examples"] == TEST_ROWS
    assert again["test_auc"] == pytest.approx(trained.report["test_auc"], abs=1e-6)
    assert again["test_loss"] == pytest.approx(trained.report["test_loss"], abs=1e-6)
    assert f"test  1,000 examples  loss {again['test_loss']:.4f}" in trainer.output


def test_trainers_find_everything_in_the_variables_other_launchers_export(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(4 * BATCH, seed=n) for n in range(2)], "async")
    reports = [tmp_path / f"report-{number}.json" for number in range(2)]
    with two_pservers(tmp_path) as (endpoints, processes):
        paddle = {
            "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(endpoints),
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_TRAINER_ID": "1",
            "PSRT_TRAINER_REPORT": str(reports[1]),
        }
        own = {
            "PSRT_TRAINER_ENDPOINTS": ",".join(endpoints),
            "PSRT_TRAINER_TRAINERS": "2",
            "PSRT_TRAINER_TRAINER_ID": "0",
            "PSRT_TRAINER_REPORT": str(reports[0]),
            "PADDLE_TRAINER_ID": "7",  # psrt's own variables go first
        }
        with (
            psrt(tmp_path / "0.log", "trainer", str(job), **own) as first,
            psrt(tmp_path / "1.log", "trainer", str(job), **paddle) as second,
        ):
            codes = first.exit_code(), second.exit_code()
            pserver_codes = [process.wait(DEADLINE_S) for process in processes]

    assert codes == (0, 0), first.output + second.output
    assert pserver_codes == [0, 0]
    told = [json.loads(report.read_text()) for report in reports]
    assert [facts["trainer"] for facts in told] == [0, 1]
    assert [facts["pservers"] for facts in told] == [2, 2]
    assert [facts["examples"] for facts in told] == [4 * BATCH, 4 * BATCH]


def test_a_damaged_model_is_refused_with_the_name_of_the_file(
    trained: Trained, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(trained.model, model)
    damaged = next(model.glob("sparse/*.rows.npy"))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)

    asked = "--evaluate", str(model), str(trained.job)
    with psrt(tmp_path / "log", "trainer", *asked) as trainer:
        code = trainer.exit_code()

    assert code == exit_code(ErrorCode.MODEL_UNREADABLE) == 72
    assert f"error: the saved model cannot be read: {damaged} does not have" in trainer.output
    assert "MODEL_UNREADABLE (exit 72)" in trainer.output
    assert "Traceback" not in trainer.output


def test_a_report_that_cannot_be_written_is_refused_before_training(
    trained: Trained, tmp_path: Path
) -> None:
    asked = "--report", str(tmp_path / "gone" / "report.json"), "--endpoints", "127.0.0.1:1"

    with psrt(tmp_path / "log", "trainer", *asked, str(trained.job)) as trainer:
        code = trainer.exit_code()

    assert code == exit_code(ErrorCode.CONFIG_INVALID)
    assert f"needs the directory {tmp_path / 'gone'}, which does not exist" in trainer.output


def test_a_malformed_line_ends_training_with_file_line_and_slot(tmp_path: Path) -> None:
    text = lines(2 * BATCH, seed=1)
    text[40] = "1 0 2 7 107 2 0.5 often\n"
    job = write_files(tmp_path, [text])
    with (
        daemon(tmp_path) as pserver,
        psrt(tmp_path / "log", "trainer", "--endpoints", pserver.endpoint, str(job)) as trainer,
    ):
        code = trainer.exit_code()

    assert code == exit_code(ErrorCode.DATA_MALFORMED) == 20
    (error,) = [line for line in trainer.output.splitlines() if line.startswith("error: ")]
    assert f"{tmp_path / 'train-0'}, line 41, " in error
    assert "slot 'x'" in error
    assert "'often'" in error
    assert "Traceback" not in trainer.output


def test_a_malformed_line_of_a_test_file_is_found_before_training(tmp_path: Path) -> None:
    job, model = write_files(tmp_path, [lines(2 * BATCH, seed=1)]), tmp_path / "model"
    test = tmp_path / "test-0"
    test.write_text(test.read_text() + "1 0 2 7\n")
    with psrt(tmp_path / "log", "trainer", "--local", "--save", str(model), str(job)) as trainer:
        code = trainer.exit_code()

    assert code == exit_code(ErrorCode.DATA_MALFORMED)
    assert f"{test}, line {TEST_ROWS + 1}, " in trainer.output
    assert "step" not in trainer.output
    assert not model.exists()
