"""Waits for the interpreter's lock, and the thread that measures them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from psrt.core.threads import CrashReport
from psrt.observe.gil_probe import GilProbe, wait_for_lock
from tests.support.carriers import eventually


@contextmanager
def running(every_s: float) -> Iterator[GilProbe]:
    probe = GilProbe(CrashReport(), every_s)
    try:
        yield probe
    finally:
        probe.close()


@pytest.fixture
def busy() -> Iterator[None]:
    """A thread that always wants the lock, and keeps it for a millisecond at a time."""
    before, ended = sys.getswitchinterval(), threading.Event()
    sys.setswitchinterval(0.001)

    def spin() -> None:
        while not ended.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    yield
    ended.set()
    thread.join()
    sys.setswitchinterval(before)


def test_a_probe_measures_the_wait_behind_a_busy_thread(busy: None) -> None:
    waits = [wait_for_lock() for _ in range(50)]

    assert min(waits) >= 0
    assert max(waits) > 0.0005


def test_it_asks_again_and_again_until_it_is_closed() -> None:
    with running(0.001) as probe:
        eventually(lambda: probe.probes >= 3, "three probes")
    asked = probe.probes

    assert probe.waited_s > 0
    assert probe.probes == asked
