"""Cuts of users' own loops: made by `checkpoint`, and gone on from after a restart."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.communicator.base import Beginning
from psrt.core.errors import ConfigError, DataError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.graph.program import Program
from psrt.partition.transpiler import DistributeTranspiler, TrainerProgram
from psrt.partition.transpiler_config import DistributeTranspilerConfig
from psrt.pserver.checkpoints import Settings, find_cut
from psrt.pserver.serving.service import PserverService
from psrt.rpc.server import Server
from psrt.storage.locate import directory_at
from psrt.trainer.cuts import ExecutorCuts
from tests.support.cluster import in_threads
from tests.support.pages import page

WAIT_S, BATCH, STEPS, TRAINERS = 60.0, 8, 12, 2

Body = Callable[[psrt.ConnectedExecutor, int], None]


def model() -> tuple[Program, str, str]:
    """A regression with a table, dropout and a counter; its loss and the counter's value."""
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
        x = layers.data("x", shape=(3,))
        click = layers.data("click", shape=(1,))
        pooled = layers.slot_embeddings([ids], size=(100, 4))
        hidden = layers.dropout(layers.fc(layers.concat([pooled, x], axis=1), 8, act="tanh"), 0.4)
        logit = layers.fc(hidden, 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
        auc = layers.auc(logit, click, from_logits=True, bins=64)
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return program, loss.name, auc.name


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """A file of examples for each trainer."""
    rng, paths = np.random.default_rng(7), []
    for trainer in range(TRAINERS):
        lines = []
        for _ in range(BATCH * STEPS):
            x, ids = rng.normal(size=3).round(3), rng.integers(0, 100, 2)
            floats, words = " ".join(map(str, x)), " ".join(map(str, ids))
            lines.append(f"2 {words} 3 {floats} 1 {int(x[0] > 0)}\n")
        path = tmp_path / f"data-{trainer}"
        path.write_text("".join(lines))
        paths.append(str(path))
    return paths


def dataset(kind: type, program: Program, path: str) -> Any:
    made = kind()
    made.set_use_var(list(program.data_vars()))
    made.set_batch_size(BATCH)
    made.set_filelist([path])
    return made


@contextmanager
def pservers(cuts: Path | None, resume: str = "", count: int = 2) -> Iterator[list[str]]:
    """The endpoints of pservers on real ports, whose job makes cuts in a directory."""
    directory = None if cuts is None else directory_at(str(cuts))
    settings = None if directory is None else Settings(directory)
    found = find_cut(directory, resume) if directory is not None and resume else None
    with ExitStack() as stack:
        endpoints = []
        for _ in range(count):
            service = PserverService(stripes=2, wait_timeout_s=WAIT_S, cuts=settings, resumed=found)
            server = Server(service.handle, port=0)
            server.start()
            service.start()
            server.set_serving(True)
            stack.callback(server.stop, 0.0)
            stack.callback(service.stop)
            endpoints.append(server.endpoint)
        yield endpoints


def part_of(
    program: Program, trainer: int, endpoints: list[str], mode: CommunicationMode
) -> TrainerProgram:
    transpiler = DistributeTranspiler(DistributeTranspilerConfig(min_block_size=8))
    transpiler.transpile(program, trainer, endpoints, TRAINERS, mode)
    return transpiler.get_trainer_program()


def trained(body: Body, endpoints: list[str], mode: CommunicationMode) -> list[psrt.Scope]:
    """Two trainers at once, each running `body`; returns their scopes."""
    program = model()[0]
    parts = [part_of(program, number, endpoints, mode) for number in range(TRAINERS)]
    executors = [
        psrt.ConnectedExecutor(part, call_timeout_s=WAIT_S, connect_timeout_s=WAIT_S)
        for part in parts
    ]

    def run(number: int) -> None:
        try:
            body(executors[number], number)
        finally:
            executors[number].close()

    in_threads([lambda: run(0), lambda: run(1)])
    return [executor.scope for executor in executors]


def batches_of(kind: str, path: str) -> Iterator[Any]:
    """The batches of a pass, which are equal in every process."""
    program = model()[0]
    if kind == "queue":
        yield from dataset(psrt.QueueDataset, program, path).batches()
        return
    made = dataset(psrt.InMemoryDataset, program, path)
    made.load_into_memory()
    made.local_shuffle(seed=5)
    yield from made.batches()


Losses = dict[int, list[Any]]


def stepping(data: list[str], kind: str, losses: Losses, cut_after: int, ends: bool) -> Body:
    """A loop of single steps that makes a cut; it goes on from one if there is one."""
    _, loss, auc = model()

    def body(executor: psrt.ConnectedExecutor, trainer: int) -> None:
        executor.start()
        first = executor.cuts.resumed.steps
        assert executor.cuts.resumed.note == ("" if not first else f"step {first}")
        for step, feed in enumerate(batches_of(kind, data[trainer])):
            if step < first:
                continue
            executor.cuts.note = f"step {step + 1}"
            losses.setdefault(trainer, []).append(executor.run(feed, [loss, auc]))
            if step + 1 == cut_after:
                assert executor.checkpoint(WAIT_S) >= 1
                if not ends:
                    return
        executor.stop()

    return body


@pytest.mark.parametrize("kind", ["queue", "in memory, shuffled"])
def test_a_loop_goes_on_from_its_cut_with_the_bits_of_one_that_was_not_interrupted(
    data: list[str], kind: str, tmp_path: Path
) -> None:
    whole_losses: Losses = {}
    losses: Losses = {}
    with pservers(tmp_path / "other") as endpoints:
        whole = trained(stepping(data, kind, whole_losses, 5, ends=True), endpoints, Sync())
    with pservers(tmp_path / "cuts") as endpoints:
        trained(stepping(data, kind, losses, 5, ends=False), endpoints, Sync())

    with pservers(tmp_path / "cuts", "latest", count=3) as endpoints:
        resumed = trained(stepping(data, kind, losses, 0, ends=True), endpoints, Sync())

    assert losses == whole_losses
    names = [name for name in whole[0] if not name.endswith(".counts")]
    for before, after in zip(whole, resumed, strict=True):
        assert all(np.array_equal(before[name], after[name]) for name in names)


@pytest.mark.parametrize("mode", [HalfAsync(), Async(), Geo()], ids=repr)
def test_a_cut_needs_no_further_step_in_the_other_modes(
    data: list[str], mode: CommunicationMode, tmp_path: Path
) -> None:
    steps: list[int] = []

    def body(executor: psrt.ConnectedExecutor, trainer: int) -> None:
        executor.start()
        steps.append(executor.cuts.resumed.steps)
        feeds = itertools.islice(batches_of("queue", data[trainer]), steps[-1], None)
        for feed in itertools.islice(feeds, 3):
            executor.run(feed)
        if not steps[-1]:
            executor.flush()
            executor.barrier("both have trained")
            assert executor.checkpoint(WAIT_S) >= 1
            executor.barrier("both have a cut")

    with pservers(tmp_path) as endpoints:
        trained(body, endpoints, mode)
    with pservers(tmp_path, "latest") as endpoints:
        trained(body, endpoints, mode)

    assert steps == [0, 0, 3, 3]


def test_a_cut_inside_a_pass_has_its_batches(data: list[str], tmp_path: Path) -> None:
    found: list[tuple[int, int]] = []

    def first(executor: psrt.ConnectedExecutor, trainer: int) -> None:
        count = itertools.count(1)

        def on_step(fetched: list[Any]) -> None:
            if next(count) == 4:
                executor.checkpoint(WAIT_S)

        executor.run_from(itertools.islice(batches_of("queue", data[trainer]), 2))
        executor.run_from(batches_of("queue", data[trainer]), on_step=on_step)

    def second(executor: psrt.ConnectedExecutor, trainer: int) -> None:
        executor.start()
        resumed = executor.cuts.resumed
        found.append((resumed.steps, resumed.batches))
        feeds = itertools.islice(batches_of("queue", data[trainer]), resumed.batches, None)
        done = executor.run_from(feeds, first=resumed.batches)
        found.append((done.examples // BATCH, trainer))
        executor.checkpoint(WAIT_S)

    with pservers(tmp_path) as endpoints:
        trained(first, endpoints, Sync())
    with pservers(tmp_path, "latest") as endpoints:
        trained(second, endpoints, Sync())

    assert sorted(found) == [(6, 4), (6, 4), (STEPS - 4, 0), (STEPS - 4, 1)]


def test_cuts_are_listed_from_python(data: list[str], tmp_path: Path) -> None:
    losses: Losses = {}
    assert psrt.checkpoint.latest(str(tmp_path / "cuts")) is None
    with pservers(tmp_path / "cuts") as endpoints:
        trained(stepping(data, "queue", losses, 4, ends=False), endpoints, Sync())

    *_, newest = psrt.checkpoint.cuts(str(tmp_path / "cuts"))

    assert newest == psrt.checkpoint.latest(str(tmp_path / "cuts"))
    assert (newest.mode, newest.trainers, newest.pservers) == ("Sync", 2, 2)
    assert newest.round >= 4
    assert sorted(newest.positions) == [0, 1]


def test_a_checkpoint_without_a_directory_is_refused(data: list[str]) -> None:
    def body(executor: psrt.ConnectedExecutor, trainer: int) -> None:
        with pytest.raises(ConfigError, match="does not coordinate any"):
            executor.checkpoint(WAIT_S)
        executor.stop()

    with pservers(None) as endpoints:
        trained(body, endpoints, HalfAsync())


def test_a_cut_of_the_trainer_command_is_refused_by_a_script(tmp_path: Path) -> None:
    cuts = ExecutorCuts(model()[0], psrt.Scope())

    with pytest.raises(DataError, match="no ConnectedExecutor"):
        cuts.begin(Beginning(3, '{"psrt_state": 2}'))


def test_the_loop_of_the_page_goes_on_after_a_restart(data: list[str], tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", page("how-to/checkpoint-and-resume.md"), re.S)
    (snippet,) = (each for each in snippets if "ConnectedExecutor" in each)
    names: dict[str, Any] = {}
    exec(snippet, names)
    feeds = [list(batches_of("queue", path)) for path in data]
    program = model()[0]

    def trained_on(count: int, endpoints: list[str]) -> None:
        parts = [part_of(program, number, endpoints, Sync()) for number in range(TRAINERS)]
        bodies = [partial(names["train"], parts[n], feeds[n][:count]) for n in range(TRAINERS)]
        in_threads(bodies)

    with pservers(tmp_path) as endpoints:
        trained_on(6, endpoints)
    assert [cut.round for cut in psrt.checkpoint.cuts(str(tmp_path))] != []
    with pservers(tmp_path, "latest") as endpoints:
        trained_on(STEPS, endpoints)

    newest = psrt.checkpoint.latest(str(tmp_path))
    assert newest is not None
    assert [json.loads(at)["steps"] for at in newest.positions.values()] == [STEPS] * TRAINERS
