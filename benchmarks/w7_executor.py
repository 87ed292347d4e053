"""W7: the executor in one process, compared with bare matrix products, its ceiling.

    python -m benchmarks.w7_executor [--threads N] [--ragged] [--seconds S] [--rounds N]
                                     [--no-memory]

`examples_per_s` and `share_of_gemm` are figures of one thread. With `--threads N` only these two
are measured, on N threads. Otherwise each round measures `speeds`, in this order:

    gemm, gemm_two_threads  the network's products in numpy, with preallocated outputs
    one_thread              the executor, batches of 512
    two_threads             two replicas with shared parameters, batches of 1,024
    two_threads_one_batch   two replicas, each with a half of a batch of 512
    two_threads_async       two replicas that do not wait for each other (`async_mode`)

The products are measured again at the end of a round. A measurement is some ten steps. The speed
of a shared host changes within a second, so measurements must be short. The first steps refill the
caches, so single steps would be too few. Figures are medians of rounds; `share_of_gemm` and the
speed-ups are medians of the ratio within a round.

Two threads can be twice as fast only on two free cores, which a shared host often lacks. A round
counts as `free` if a second thread sped up bare products by 1.85, both before and after the other
measurements. Figures with `_free` are medians over these rounds, the others over all rounds.

`stolen_cpu` is the share of CPU time that other guests of a virtual host took.
`python_between_ops` is the profiler's. Memory is measured in separate processes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import psrt
from benchmarks.measuring import processes
from benchmarks.workloads import w7_model
from benchmarks.workloads.gemm import gemm_by_threads
from benchmarks.workloads.w7_executors import alone_executor, apart_executor, shared_executor
from benchmarks.workloads.w7_figures import summary
from psrt.executor.profiling.profile import Profiler
from psrt.executor.strategies import ReduceStrategy

MEMORY: dict[str, tuple[dict[str, Any], int]] = {
    "plain": ({}, 1),
    "memory_optimize": ({"memory_optimize": True}, 1),
    "all_reduce_4": ({}, 4),
    "reduce_4": ({"reduce_strategy": "Reduce"}, 4),
    "reduce_4_memory_optimize": ({"reduce_strategy": "Reduce", "memory_optimize": True}, 4),
}

Feed: TypeAlias = dict[str, object]


def run(args: argparse.Namespace) -> harness.Figures:
    return compare(args) if args.threads is None else run_on(args.threads, args)


def run_on(threads: int, args: argparse.Namespace) -> harness.Figures:
    """Speed of the executor on `threads` threads, a batch of 512 each, and of bare products."""
    program, loss = w7_model.build(args.ragged)
    feeds = w7_model.feeds(max(1, 32 // threads), threads, args.ragged)
    if threads == 1:
        rounds = beside_gemm(alone_executor(program, loss).run, feeds, threads, args)
    else:
        with shared_executor(program, loss, threads, args.spin_s) as executor:
            rounds = beside_gemm(executor.run, feeds, threads, args)
    return {
        "workload": workload(args),
        "threads": threads,
        "examples_per_s": round(statistics.median(reached for reached, _ in rounds)),
        "gemm_examples_per_s": round(statistics.median(gemm for _, gemm in rounds)),
        "share_of_gemm": round(statistics.median(own / gemm for own, gemm in rounds), 3),
    }


def beside_gemm(
    step: Callable[..., object], feeds: list[Feed], threads: int, args: argparse.Namespace
) -> list[tuple[float, float]]:
    """Examples per second of each round, by the executor and by bare products around it."""
    rounds = []
    for _ in range(args.rounds):
        before = gemm_by_threads(threads, args.seconds)
        reached = speed(step, feeds, args.seconds)
        rounds.append((reached, (before + gemm_by_threads(threads, args.seconds)) / 2))
    return rounds


def compare(args: argparse.Namespace) -> harness.Figures:
    """Figures of one thread and of two."""
    program, loss = w7_model.build(args.ragged)
    small, large = (w7_model.feeds(32, joined, args.ragged) for joined in (1, 2))
    alone = alone_executor(program, loss)
    pair = shared_executor(program, loss, 2, args.spin_s)
    apart = apart_executor(program, loss)

    def executors_at_work() -> dict[str, float]:
        return {
            "one_thread": speed(alone.run, small, args.seconds),
            "two_threads": speed(pair.run, large, args.seconds),
            "two_threads_one_batch": speed(pair.run, small, args.seconds),
            "two_threads_async": speed_apart(apart, small, args.seconds),
        }

    with harness.Steal() as steal:
        rounds = [measured(executors_at_work, args.seconds) for _ in range(args.rounds)]
    pair.close()
    apart.close()
    figures: harness.Figures = {
        "workload": workload(args),
        **summary(rounds),
        "stolen_cpu": None if steal.share is None else round(steal.share, 3),
        "python_between_ops": python_between_ops(alone, small),
    }
    if not args.no_memory:
        figures["memory"] = {kind: memory_of(kind, args.ragged) for kind in MEMORY}
    return figures


def workload(args: argparse.Namespace) -> str:
    return "W7 executor, CTR-DNN" + (", ragged slots" if args.ragged else "")


def measured(work: Callable[[], dict[str, float]], seconds: float) -> dict[str, float]:
    """The speeds of one round, and the least gain of bare products by a second thread."""
    before = gemm_by_threads(1, seconds), gemm_by_threads(2, seconds)
    speeds = work()
    after = gemm_by_threads(1, seconds), gemm_by_threads(2, seconds)
    return {
        "gemm": (before[0] + after[0]) / 2,
        "gemm_two_threads": (before[1] + after[1]) / 2,
        **speeds,
        "least_gemm_gain": min(before[1] / before[0], after[1] / after[0]),
    }


def speed(step: Callable[..., object], feeds: list[Feed], seconds: float) -> float:
    """Examples per second of `step`, called for `seconds`."""
    step(feeds[-1], roles=w7_model.TRAIN)
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        step(feeds[steps % len(feeds)], roles=w7_model.TRAIN)
        steps += 1
    elapsed = time.perf_counter() - started
    return steps * len(feeds[0]["dense"]) / elapsed  # type: ignore[arg-type]


def speed_apart(executor: psrt.ParallelExecutor, feeds: list[Feed], seconds: float) -> float:
    """Examples per second of an executor's `run_from`."""
    executor.run_from(feeds[-2:], roles=w7_model.TRAIN)
    started = time.perf_counter()

    def until_over() -> Iterator[Feed]:
        for feed in itertools.cycle(feeds):
            if time.perf_counter() - started > seconds:
                return
            yield feed

    done = executor.run_from(until_over(), roles=w7_model.TRAIN)
    return done.examples / (time.perf_counter() - started)


def python_between_ops(executor: psrt.Executor, feeds: list[Feed]) -> float:
    """The share of a step outside of ops."""
    executor.profiler = profiler = Profiler()
    for feed in feeds * 4:
        executor.run(feed, roles=w7_model.TRAIN)
    executor.profiler = None
    spent = profiler.step_time()
    return round(1 - (spent.ops_ns + spent.waits_ns) / spent.wall_ns, 3)


# --- memory ---------------------------------------------------------------------------------------


def memory_of(kind: str, ragged: bool) -> dict[str, float]:
    """Memory of training, measured in a separate process."""
    command = [sys.executable, "-m", "benchmarks.w7_executor", "--memory-of", kind]
    if ragged:
        command.append("--ragged")
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def print_memory(kind: str, ragged: bool) -> None:
    """Print the memory of steps on batches of 2,048 examples, with parameters."""
    flags, replicas = MEMORY[kind]
    strategy = ReduceStrategy[str(flags.pop("reduce_strategy", "AllReduce"))]
    build = psrt.BuildStrategy(reduce_strategy=strategy, **flags)
    program, loss = w7_model.build(ragged)
    feeds = w7_model.feeds(4, 4, ragged)
    scope = psrt.Scope()
    scope.init_parameters(program)
    before = processes.peak_resident_bytes()
    with psrt.ParallelExecutor(program, scope, replicas, build, keep=[loss]) as executor:
        for feed in feeds * 3:
            executor.run(feed, [loss], roles=w7_model.TRAIN)
        temporary = executor.memory_bytes()
    grown = processes.peak_resident_bytes() - before
    grown_mib, temporary_mib = (round(size / processes.MIB, 1) for size in (grown, temporary))
    print(json.dumps({"temporary_mib": temporary_mib, "peak_grew_mib": grown_mib}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ragged", action="store_true", help="one to three ids a slot")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--spin-s", type=float, default=0.02, help="of idle threads of the pool")
    parser.add_argument("--threads", type=int, choices=range(1, 65), metavar="N")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--memory-of", choices=list(MEMORY), help=argparse.SUPPRESS)
    args, _ = parser.parse_known_args()
    if args.memory_of:
        print_memory(args.memory_of, args.ragged)
    else:
        harness.main(parser, run)


if __name__ == "__main__":
    main()
