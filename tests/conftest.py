"""State of test processes: files leave it as they found it, and garbage collections are cheap.

What collecting tests makes is never looked at again: the modules and tests of a whole run are
millions of objects that live to the end. Otherwise each full collection takes a second, and some
tests ask for several.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest

ROLES = ("PSRT_", "PADDLE_", "TRAINING_ROLE", "POD_IP", "CPU_NUM", "FLAGS_", "SLURM_", "OMPI_")
ROLES += ("RANK", "WORLD_SIZE", "MASTER_", "PATH", "HOME", "PYTHONPATH", "TMPDIR")
"""Beginnings of variables that processes of tests read; libraries set others when imported."""


@pytest.fixture(scope="module", autouse=True)
def left_as_found() -> Iterator[None]:
    """Fail a file that leaves its environment, working directory or handler of SIGTERM changed.

    Files after it run in the same process, and pass or fail by what they find.
    """
    found = process_state()
    yield
    left = process_state()
    names = found.keys() | left.keys()
    assert [name for name in sorted(names) if found.get(name) != left.get(name)] == []


def process_state() -> dict[str, object]:
    """By name; variables of the environment have theirs."""
    own = {name: value for name, value in os.environ.items() if name.startswith(ROLES)}
    return {**own, "the directory": os.getcwd(), "SIGTERM": signal.getsignal(signal.SIGTERM)}


@pytest.fixture(scope="module")
def cheap_collections() -> None:
    """Let full collections visit only what tests of one module make: they ask for many."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
