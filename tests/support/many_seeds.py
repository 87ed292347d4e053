"""Runs of many seeds, in several processes if asked, until all are done or the time is over."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice, takewhile
from multiprocessing import connection
from typing import TypeVar

Result = TypeVar("Result")


def results_of(
    run: Callable[[int], Result], seeds: Iterable[int], jobs: int = 1, minutes: float | None = None
) -> Iterator[Result]:
    """Yield `run(seed)` of every seed, each as it ends; after `minutes` no further one begins.

    With `jobs` > 1 `run` and its results are pickled. An interrupt then lets those under way end.
    """
    until = time.monotonic() + minutes * 60 if minutes else float("inf")
    in_time = takewhile(lambda _: time.monotonic() < until, seeds)
    return map(run, in_time) if jobs == 1 else _in_processes(run, in_time, jobs)


def _in_processes(
    run: Callable[[int], Result], seeds: Iterator[int], jobs: int
) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _become_a_worker) as pool:
        running: set[Future[Result]] = {pool.submit(run, seed) for seed in islice(seeds, jobs)}
        while running:
            try:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                seeds = iter(())
                continue
            running |= {pool.submit(run, seed) for seed in islice(seeds, len(ended))}
            yield from (future.result() for future in ended)


def _become_a_worker() -> None:
    """Leave interrupts to the first process, and end with it."""
    os.setpgrp()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with(sentinel: int) -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=end_with, args=(parent.sentinel,), daemon=True).start()
