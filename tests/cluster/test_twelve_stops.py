"""One gradient and one row through a live cluster, past the stops that the design file lists."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.specs import Sync
from psrt.graph.program import Program
from psrt.partition.transpiler import DistributeTranspiler
from psrt.trainer.training.connected import ConnectedExecutor
from tests import house
from tests.support.cluster import in_threads
from tests.support.live_pservers import live_pservers

TRAINERS, ID = 2, 7
PATHS = {"dense parameter": 0, "row": 1}


class Journal:
    """The stops passed, in the order of the calls."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self._lock = threading.Lock()

    def noting(self, stop: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            with self._lock:
                self.passed.append(stop)
            return call(*args, **options)

        return noted


def stops(path: str) -> list[tuple[str, str]]:
    """(name, call) of each stop of the block in the design file, as that path takes it."""
    block = re.search(r"```stops\n(.*?)```", house.DESIGN.read_text(), re.S)
    assert block, "docs/ARCHITECTURE.md has no ```stops block"
    found = []
    for line in block[1].strip().splitlines():
        name, *calls = re.split(r"\s+\|?\s*", line.strip())
        call = calls[min(PATHS[path], len(calls) - 1)]
        if call != "-":
            found.append((name, call))
    return found


@contextmanager
def watched(journal: Journal, calls: set[str]) -> Iterator[None]:
    """Note each call, wherever psrt refers to it."""
    with ExitStack() as stack:
        for call in calls:
            module, _, name = call.partition(":")
            owner: Any = importlib.import_module(module)
            *outer, last = name.split(".")
            for each in outer:
                owner = getattr(owner, each)
            original = getattr(owner, last)
            noted = journal.noting(call, original)
            for place in [owner] if outer else references(last, original):
                stack.enter_context(mock.patch.object(place, last, noted))
        yield


def references(name: str, original: object) -> list[Any]:
    """The modules of psrt that hold `original` under its name."""
    loaded = [module for at, module in sys.modules.items() if at.startswith("psrt.")]
    return [module for module in loaded if vars(module).get(name) is original]


def program() -> Program:
    """One dense parameter and one table."""
    with psrt.program(seed=3) as made:
        ids = layers.data("ids", shape=(1,), dtype="int64")
        row = layers.embedding(ids, (100, 4), is_sparse=True, is_distributed=True)
        loss = layers.mean(layers.fc(layers.flatten(row), 2, bias=False))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return made


@pytest.fixture(scope="module")
def passed() -> list[str]:
    """The calls of a cluster of two trainers that train two steps on one id."""
    trained, journal = program(), Journal()
    calls = {call for path in PATHS for _, call in stops(path)}
    feed = {"ids": np.array([[ID]], np.int64)}

    def train(trainer: int, endpoint: str) -> None:
        transpiler = DistributeTranspiler()
        transpiler.transpile(trained, trainer, [endpoint], TRAINERS, Sync())
        with ConnectedExecutor(transpiler.get_trainer_program(), call_timeout_s=60.0) as executor:
            executor.run_from([feed, feed])

    with live_pservers(1) as (pserver,), watched(journal, calls):
        targets = [
            lambda trainer=trainer: train(trainer, pserver.endpoint) for trainer in range(TRAINERS)
        ]
        in_threads(targets)
    return journal.passed


@pytest.mark.parametrize("path", PATHS)
def test_each_stop_is_passed_in_the_order_of_the_design_file(passed: list[str], path: str) -> None:
    left = iter(passed)

    missed = [name for name, call in stops(path) if call not in left]

    assert missed == []


def test_every_trainer_passes_the_stops_of_a_trainer(passed: list[str]) -> None:
    step = next(call for name, call in stops("row") if name == "step")

    assert passed.count(step) == TRAINERS * 2


def test_a_round_is_applied_once_for_all_trainers(passed: list[str]) -> None:
    calls = dict(stops("row"))

    assert passed.count(calls["admit"]) == TRAINERS * 2
    assert passed.count(calls["round"]) == 2


def test_the_design_names_twelve_stops_up() -> None:
    names = [name for name, _ in stops("row")]

    assert names.index("read") == 12
