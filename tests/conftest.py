"""State of test processes: files leave it as they found it, and garbage collections are cheap.

What collecting tests makes is never looked at again: the modules and tests of a whole run are
millions of objects that live to the end. Otherwise each full collection takes a second, and some
tests ask for several.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from signal import SIGINT

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "any host",
    hypothesis.settings(),
    deadline=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,  # such tests clear their directory
    ],
)
hypothesis.settings.load_profile("any host")

ROLES = ("PSRT_", "PADDLE_", "TRAINING_ROLE", "POD_IP", "CPU_NUM", "FLAGS_", "SLURM_", "OMPI_")
ROLES += ("RANK", "WORLD_SIZE", "MASTER_", "PATH", "HOME", "PYTHONPATH", "TMPDIR")
"""Beginnings of variables that processes of tests read; libraries set others when imported."""

LASTING = re.compile(r"stacks|fsspecIO|Dummy-\d+|Thread-\d+ \(_poll_wrapper\)")
"""Names of threads that a process has once: of `psrt stacks`, fsspec, and gRPC."""

ENDING_S = 30.0


@pytest.fixture(scope="module", autouse=True)
def left_as_found() -> Iterator[None]:
    """Fail a file that leaves the process changed, or threads that run on.

    Files after it run in the same process, and pass or fail by what they find.
    """
    found, running = process_state(), set(threading.enumerate())
    yield
    left = process_state()
    names = found.keys() | left.keys()
    assert [name for name in sorted(names) if found.get(name) != left.get(name)] == []
    assert still_running(running) == []


def still_running(before: set[threading.Thread]) -> list[str]:
    """Names of threads that were not there `before` and do not end soon."""
    started = [
        thread
        for thread in threading.enumerate()
        if thread not in before and not LASTING.fullmatch(thread.name)
    ]
    if started:
        gc.collect()  # threads of executors end once nobody holds these
    deadline = time.monotonic() + ENDING_S
    for thread in started:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread.name for thread in started if thread.is_alive()]


def process_state() -> dict[str, object]:
    """By name; variables of the environment have theirs."""
    own = {name: value for name, value in os.environ.items() if name.startswith(ROLES)}
    return {
        **own,
        "the directory": os.getcwd(),
        "SIGTERM": signal.getsignal(signal.SIGTERM),
        "paddle": "paddle" in sys.modules,
        "limits of files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "collections": (gc.isenabled(), gc.get_threshold()),
    }


@pytest.fixture(scope="module", autouse=True)
def as_a_process_begins() -> Iterator[None]:
    """Put back what commands and notebooks change: where psrt logs, imports, and Ctrl-C."""
    path, logger, interrupt = list(sys.path), logging.getLogger("psrt"), signal.getsignal(SIGINT)
    handlers, level, propagates = list(logger.handlers), logger.level, logger.propagate
    yield
    sys.path[:] = path
    logger.handlers[:], logger.propagate = handlers, propagates
    logger.setLevel(level)
    signal.signal(SIGINT, interrupt or signal.SIG_DFL)


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
