"""Stacks that one process asks of another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from psrt.core import process as stacks

WAITS = """
import sys
from psrt.core.process import write_stacks_on_request

def waits_for_a_line():
    print("ready", flush=True)
    sys.stdin.readline()

write_stacks_on_request()
write_stacks_on_request()
waits_for_a_line()
"""


@contextmanager
def waiting_process(program: str = WAITS) -> Iterator[subprocess.Popen[str]]:
    """A process that has written its first line, and waits for one on its standard input."""
    words = [sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_process_writes_its_stacks_and_goes_on() -> None:
    with waiting_process() as process:
        first, second = (stacks.stacks_of(process.pid, timeout_s=30.0) for _ in range(2))
        _, errors = process.communicate("\n")

    assert "waits_for_a_line" in first
    assert second.count("waits_for_a_line") == 1
    assert (process.returncode, errors) == (0, "")


BUSY = """
import sys, threading
from psrt.core.process import write_stacks_on_request

def deep(n):
    return n if n == 0 else deep(n - 1)

def busy():
    while True:
        list(map(deep, range(20)))
        short = threading.Thread(target=deep, args=(5,))
        short.start()
        short.join()

write_stacks_on_request()
for _ in range(4):
    threading.Thread(target=busy, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_a_process_whose_threads_run_is_not_ended_by_requests() -> None:
    with waiting_process(BUSY) as process:
        for _ in range(200):
            os.kill(process.pid, signal.SIGRTMIN + 5)
            Path(f"/proc/{process.pid}/maps").read_text()  # takes the time of some threads

        assert process.poll() is None


def test_only_processes_that_obey_are_found() -> None:
    other = "print('ready', flush=True); input()"
    with waiting_process() as process, waiting_process(other) as stranger:
        found = stacks.processes_with_stacks()

    assert process.pid in found
    assert stranger.pid not in found


def test_a_stopped_process_writes_nothing() -> None:
    with waiting_process() as process:
        os.kill(process.pid, signal.SIGSTOP)

        assert stacks.stacks_of(process.pid, timeout_s=0.1) == ""


def test_a_process_that_has_ended_has_no_stacks() -> None:
    with waiting_process() as process:
        process.communicate("\n")

    assert not Path(f"/proc/{process.pid}").exists()
    with pytest.raises(OSError, match="has ended"):
        stacks.stacks_of(process.pid)


SIGNALS_AROUND_THE_HANDLER = """
import faulthandler, os, signal
from psrt.core.process import stacks

def ask(*ignored, **also_ignored):
    os.kill(os.getpid(), stacks._request())

register = faulthandler.register
def register_late(number, **how):
    if number == stacks._request():
        ask()
    register(number, **how)

faulthandler.register = register_late
stacks.write_stacks_on_request()
faulthandler.unregister(stacks._request())  # what the interpreter does at its end
ask()
print("ready", flush=True)
"""


def test_a_request_before_the_handler_is_there_or_after_it_is_gone_ends_nothing() -> None:
    with waiting_process(SIGNALS_AROUND_THE_HANDLER) as process:
        process.communicate()

    assert process.returncode == 0


def test_a_process_is_not_asked_before_it_has_its_handler() -> None:
    program = """
import os, sys
file = os.memfd_create("psrt-stacks")
print("ready", flush=True)
sys.stdin.readline()
"""
    with waiting_process(program) as process:
        found = stacks.processes_with_stacks()

    assert process.pid not in found
