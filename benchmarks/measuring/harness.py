"""Pserver and trainer processes, repeated runs, and one JSON object of figures at the end."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.measuring import transport

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
READY_TIMEOUT_S = 180.0  # a cold kernel cache on a busy host

Figures = dict[str, Any]


class Hosts(Protocol):
    """Hosts of processes: pservers run on `p0`, `p1`, …, trainers on `t0`, `t1`, …."""

    def address(self, host: str) -> str: ...
    def prefix(self, host: str) -> list[str]:
        """The words to put before a command, so that it runs on the host."""
        ...


class Here:
    """This machine as the only host."""

    def address(self, host: str) -> str:
        return "127.0.0.1"

    def prefix(self, host: str) -> list[str]:
        return []


def main(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], Figures]) -> None:
    """Run a workload `--repeat` times and print its figures; numbers become min, median, max."""
    parser.add_argument("--repeat", type=int, default=1, metavar="N")
    parser.add_argument("--transport", choices=transport.TRANSPORTS, default="unix")
    args = parser.parse_args()
    with transport.over(args.transport):
        runs = [run(args) | {"transport": args.transport} for _ in range(args.repeat)]
    print(json.dumps(runs[0] if args.repeat == 1 else merge(runs)))


def merge(runs: list[Figures]) -> Figures:
    """Figures of several runs: equal values stay, numbers become spreads, lists medians."""
    return {key: _spread([run[key] for run in runs]) for key in runs[0]}


def _spread(values: list[Any]) -> Any:
    if all(value == values[0] for value in values):
        return values[0]
    if isinstance(values[0], dict):
        return merge(values)
    if isinstance(values[0], list):
        return [statistics.median(each) for each in zip(*values, strict=True)]
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


class Daemon(NamedTuple):
    """A pserver that is ready."""

    endpoint: str
    pid: int
    metrics: str


@contextlib.contextmanager
def pservers(count: int, *flags: str, hosts: Hosts | None = None) -> Iterator[list[str]]:
    """The endpoints of `count` daemons."""
    with daemons(count, *flags, hosts=hosts) as found:
        yield [daemon.endpoint for daemon in found]


@contextlib.contextmanager
def daemons(count: int, *flags: str, hosts: Hosts | None = None) -> Iterator[list[Daemon]]:
    """`count` pservers on free ports; leaving the context ends them."""
    with tempfile.TemporaryDirectory(prefix="psrt-bench-") as folder:
        ready = [Path(folder) / f"pserver-{index}.json" for index in range(count)]
        children = [
            _start(path, flags, hosts or Here(), f"p{index}") for index, path in enumerate(ready)
        ]
        try:
            yield [_ready(path, child) for path, child in zip(ready, children, strict=True)]
        finally:
            for child in children:
                child.terminate()
            for child in children:
                _awaited(child)


def _start(ready: Path, flags: tuple[str, ...], hosts: Hosts, host: str) -> subprocess.Popen[bytes]:
    command = [*hosts.prefix(host), sys.executable, "-m", "psrt", "pserver"]
    command += ["--host", hosts.address(host), "--port", "0", "--ready-file", str(ready)]
    quiet = ["--log-level", "warning", *flags]
    return subprocess.Popen([*command, *quiet], env=os.environ | ONE_THREAD, stdout=sys.stderr)


def _awaited(child: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a child, so that it does not slow the next measurement."""
    try:
        child.wait(timeout=30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _ready(ready: Path, child: subprocess.Popen[bytes]) -> Daemon:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not ready.exists():
        if child.poll() is not None:
            raise SystemExit(
                f"pserver {child.pid} ended with {child.returncode} before it was ready"
            )
        if time.monotonic() > deadline:
            raise SystemExit(f"pserver {child.pid} was not ready within {READY_TIMEOUT_S:.0f} s")
        time.sleep(0.02)
    facts = json.loads(ready.read_text())
    return Daemon(str(facts["endpoint"]), int(facts["pid"]), str(facts["metrics"]))


def together(module: str, flags: list[list[str]], timeout_s: float = 600.0) -> list[Figures]:
    """Run `benchmarks.{module}` once per list of flags, concurrently; returns their figures."""
    children = [start(module, extra) for extra in flags]
    return [figures_of(child, timeout_s) for child in children]


def start(module: str, flags: list[str]) -> subprocess.Popen[bytes]:
    """Start `benchmarks.{module}` in a process of its own, with one BLAS thread."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *flags]
    return subprocess.Popen(command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE)


def figures_of(child: subprocess.Popen[bytes], timeout_s: float) -> Figures:
    """Wait for a process of `start`; returns the JSON object of its last line."""
    printed = child.communicate(timeout=timeout_s)[0]
    if child.returncode:
        raise SystemExit(f"a child of the benchmark ended with exit code {child.returncode}")
    return dict(json.loads(printed.splitlines()[-1]))


class Steal:
    """The share of the host's CPU time that its other guests took inside the context, 0 to 1.

    `share` is None if the kernel does not report it.
    """

    def __enter__(self) -> Steal:
        self._before = _cpu_ticks()
        self.share: float | None = None
        return self

    def __exit__(self, *_: object) -> None:
        before, after = self._before, _cpu_ticks()
        if before is not None and after is not None and after[1] > before[1]:
            self.share = (after[0] - before[0]) / (after[1] - before[1])


def _cpu_ticks() -> tuple[int, int] | None:
    """(stolen, all) ticks of all cores since boot."""
    try:
        with Path("/proc/stat").open() as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except OSError:
        return None
    return ticks[7], sum(ticks)
