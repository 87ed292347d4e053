"""`--state` and `--resume`: training goes on with exactly the batches that were to come."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from psrt.config.load import load_job
from psrt.config.sections import TrainerConfig
from psrt.core.errors import ConfigError, DataError, StorageError
from psrt.core.tensors import Ragged
from psrt.data.sources import sharding
from psrt.data.sources.places import Place, Position
from psrt.kernels import jit
from psrt.trainer.inputs import batches, state
from psrt.trainer.inputs.job import Job
from psrt.trainer.inputs.job import load_job as build
from psrt.trainer.inputs.prefetch import PreparedBatch
from psrt.trainer.inputs.state import DataShare, Reached
from psrt.trainer.sessions import command
from tests.support.small_job import PROGRAM, lines, write_files

BATCH, EPOCHS = 8, 2
SHARE = DataShare("small", 0, 1, ("f", "g"))


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    jit.warm_up()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Three files whose ends do not fall together with those of batches, trained locally."""
    texts = [lines(rows, seed) for seed, rows in enumerate([19, 6, 21])]
    path = write_files(tmp_path, texts, batch=BATCH, epochs=EPOCHS)
    whole = PROGRAM.replace("(1000, 4)", "(1000, 4), is_distributed=False")
    (tmp_path / "program.py").write_text(whole)
    return path


def flat(batch: PreparedBatch) -> tuple[Any, ...]:
    arrays = {
        name: (fed.values.tobytes(), fed.offsets.tobytes())
        if isinstance(fed, Ragged)
        else fed.tobytes()
        for name, fed in batch.feed.items()
    }
    return batch.epoch, batch.examples, arrays


def built(path: Path, shuffle_seed: int = -1) -> Job:
    seeded = f"[data]\nshuffle_seed = {shuffle_seed}\n"
    path.write_text(path.read_text().replace("[data]\n", seeded))
    return build(load_job(str(path), environ={}).config)


def fed(job: Job, start: Reached = state.AT_THE_START) -> list[PreparedBatch]:
    return list(batches.feed(job, batches.training_files(job, 0, 1), EPOCHS, start=start))


@pytest.mark.parametrize("shuffle_seed", [-1, 3])
def test_the_remaining_batches_are_those_of_a_training_that_was_not_interrupted(
    job: Path, shuffle_seed: int
) -> None:
    trained = built(job, shuffle_seed)
    whole = fed(trained)
    assert len(whole) == 2 * 6

    for steps, last in enumerate(whole, 1):
        rest = fed(trained, Reached(last.epoch, steps, last.place))

        assert [flat(batch) for batch in rest] == [flat(batch) for batch in whole[steps:]]


def test_files_come_in_an_order_of_each_epoch_and_each_once() -> None:
    files = [Path(name) for name in "abcde"]

    orders = [sharding.in_epoch(files, 5, epoch) for epoch in range(1, 9)]

    assert all(sorted(order, key=str) == files for order in orders)
    assert len({tuple(order) for order in orders}) > 4
    assert orders == [sharding.in_epoch(files, 5, epoch) for epoch in range(1, 9)]
    assert orders != [sharding.in_epoch(files, 6, epoch) for epoch in range(1, 9)]
    assert sharding.in_epoch(files, -1, 2) == files


def test_a_state_that_was_written_is_read_again(tmp_path: Path) -> None:
    path, place = str(tmp_path / "at.json"), Place((Position("g", 400, 3, 2),), 2)

    state.Recorder(path, SHARE, Reached(2, 17, place)).write()

    assert state.load(path, SHARE) == Reached(2, 17, place)


def test_a_state_is_written_at_the_end_of_each_epoch(tmp_path: Path) -> None:
    path = str(tmp_path / "at.json")
    recorder = state.Recorder(path, SHARE, state.AT_THE_START)
    made = [PreparedBatch({}, {}, {}, 1, epoch, Place((), 1)) for epoch in (1, 1, 2)]

    written = []
    for batch, following in zip(made, [*made[1:], None], strict=True):
        recorder.trained(batch, following)
        written.append(state.load(path, SHARE) if Path(path).exists() else None)

    assert written == [None, Reached(2, 2), Reached(3, 3)]


def train(job: Path, stop_at_step: int = 0, **settings: Any) -> tuple[int, dict[str, Any]]:
    """Exit code and report of a trainer that is sent SIGTERM during a step."""

    def say(line: str) -> None:
        if stop_at_step and f"step {stop_at_step} " in line:
            signal.raise_signal(signal.SIGTERM)

    report = job.parent / "report.json"
    options = {"local": True, "log_every_s": 0.0, "report": str(report), **settings}
    code = command.train(TrainerConfig(**options), load_job(str(job), environ={}).config, say)
    return code, json.loads(report.read_text())


@pytest.mark.parametrize("stop_at_step", [1, 4, 8])
def test_a_trainer_that_was_stopped_is_gone_on_with_by_another_one(
    job: Path, stop_at_step: int
) -> None:
    path = str(job.parent / "at.json")
    _, whole = train(job)

    code, first = train(job, stop_at_step, state=path)
    at_stop = json.loads(Path(path).read_text())
    _, second = train(job, state=path, resume=path)

    assert (code, first["steps"], at_stop["steps"]) == (143, stop_at_step, stop_at_step)
    assert first["steps"] + second["steps"] == whole["steps"] == 12
    assert first["examples"] + second["examples"] == whole["examples"] == EPOCHS * 46
    at_end = json.loads(Path(path).read_text())
    assert (at_end["epoch"], at_end["steps"]) == (EPOCHS + 1, 12)


def contents(directory: Path) -> dict[str, bytes]:
    """The files of a saved model, except the manifest, which has its time."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {each.name: each.read_bytes() for each in files if each.name != "manifest.json"}


@pytest.mark.parametrize("optimizer", ["Adagrad(learning_rate=0.1)", "Adam(learning_rate=0.01)"])
@pytest.mark.parametrize("distributed", [False, True])
def test_a_resumed_local_training_ends_with_the_bits_of_one_that_was_not_stopped(
    job: Path, optimizer: str, distributed: bool
) -> None:
    program = job.parent / "program.py"
    text = program.read_text().replace("Adagrad(learning_rate=0.1)", optimizer)
    program.write_text(
        text.replace(", is_distributed=False", "" if distributed else ", is_distributed=False")
    )
    path, whole, resumed = (str(job.parent / name) for name in ("at.json", "whole", "resumed"))
    train(job, save=whole)

    train(job, 4, state=path)
    train(job, 8, state=path, resume=path)
    train(job, state=path, resume=path, save=resumed)

    assert contents(Path(resumed)) == contents(Path(whole))
    assert contents(Path(whole))
    assert [each.name for each in job.parent.glob("at.*.arrays")] == ["at.12.arrays"]


def test_a_state_without_parameters_is_refused_without_pservers(job: Path) -> None:
    path = job.parent / "at.json"
    train(job, 4, state=str(path))
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({n: v for n, v in facts.items() if n != "parameters"}))

    with pytest.raises(ConfigError, match="has a position in the data, but no parameters"):
        train(job, resume=str(path))


def test_parameters_of_another_program_are_refused(job: Path) -> None:
    path = str(job.parent / "at.json")
    train(job, 4, state=path)
    program = job.parent / "program.py"
    program.write_text(program.read_text().replace("Adagrad(", "Adam("))

    with pytest.raises(ConfigError, match="does not fit this job: the optimizer of"):
        train(job, resume=path)


def test_damaged_parameters_are_refused_by_name(job: Path) -> None:
    path = str(job.parent / "at.json")
    train(job, 4, state=path)
    (arrays,) = job.parent.glob("at.*.arrays")
    arrays.write_bytes(arrays.read_bytes()[:-8] + b"12345678")

    with pytest.raises(StorageError, match=r"at\.4\.arrays"):
        train(job, resume=path)


def test_a_training_that_is_over_can_be_gone_on_with_for_more_epochs(job: Path) -> None:
    path = str(job.parent / "at.json")
    train(job, state=path)
    job.write_text(job.read_text().replace(f"epochs = {EPOCHS}", f"epochs = {EPOCHS + 1}"))

    _, more = train(job, resume=path)

    assert (more["epochs"], more["steps"]) == (EPOCHS + 1, 6)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (DataShare("big", 0, 1, ("f", "g")), "job is 'big' there and 'small' here"),
        (DataShare("small", 1, 1, ("f", "g")), "trainer is 1 there and 0 here"),
        (DataShare("small", 0, 2, ("f", "g")), "trainers is 2 there and 1 here"),
        (DataShare("small", 0, 1, ("f", "g"), 5), "shuffle seed is 5 there and -1 here"),
        (DataShare("small", 0, 1, ("g", "f")), "file that differs is 'g' there and 'f' here"),
        (DataShare("small", 0, 1, ("f",)), "file that differs is 'none' there and 'g' here"),
    ],
)
def test_the_state_of_another_share_is_refused(
    tmp_path: Path, other: DataShare, message: str
) -> None:
    path = str(tmp_path / "at.json")
    state.Recorder(path, other, state.AT_THE_START).write()

    with pytest.raises(ConfigError, match=message):
        state.load(path, SHARE)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"psrt_state": 1}', "\x00"])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "at.json").write_text(text)

    with pytest.raises(DataError, match=r"at\.json is not a state"):
        state.load(str(tmp_path / "at.json"), SHARE)


def test_a_state_without_its_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "at.json"
    state.Recorder(str(path), SHARE, state.AT_THE_START).write()
    path.write_text(path.read_text().replace("next_file", "next"))

    with pytest.raises(DataError, match="is not a state"):
        state.load(str(path), SHARE)


def test_a_state_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--resume .*gone\.json cannot be read: No such file"):
        state.load(str(tmp_path / "gone.json"), SHARE)


def test_each_of_several_trainers_has_a_file_of_its_own() -> None:
    assert state.path_of("runs/at.json", 0, 1) == "runs/at.json"
    assert state.path_of("runs/at.json", 1, 2) == "runs/at.trainer-1.json"
    assert state.path_of("", 1, 2) == ""
