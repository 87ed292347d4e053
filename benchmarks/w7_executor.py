"""W7: the executor alone, one process, against the ceiling of bare matrix products.

python -m benchmarks.w7_executor [--threads N] [--ragged] [--seconds S] [--rounds N] [--no-memory]

`examples_per_s` and `share_of_gemm` are those of one thread; with `--threads N` nothing is measured
but these, on N threads.

Without it each round measures, one after the other so that a busy host slows all alike: the
network's products by numpy with preallocated outputs on one thread and on two, the executor on one
thread (batches of 512), the parallel executor with two replicas on two threads (batches of 1,024,
parameters shared), for comparison with two threads and one batch of 512 cut in two, with two
replicas that take whole batches of 512 and do not wait for each other (`async_mode`), and the
products again: `speeds`. A measurement is some ten steps: on a shared host the speed of everything
moves within a second, and of a few steps the first ones fetch what the measurement before has
pushed out of the caches. Figures are medians of rounds; `share_of_gemm` and the speed-ups are
medians of the ratio within a round.

Two threads can be twice as fast only where two cores are free, and on a shared host they often are
not. Bare products, which wait for nobody, tell: a round counts as `free` if they gained 1.85 by a
second thread both before and after the rest was measured. `…_free` are medians over these rounds,
whatever the executor did in them, the others over all. `stolen_cpu` is what other guests of a
virtual host took meanwhile. `python_between_ops` is the profiler's. Memory is measured in processes
of its own.
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
from typing import TypeAlias

from benchmarks import harness

os.environ.update(harness.ONE_THREAD)

import psrt
from benchmarks import processes, w7_model
from benchmarks.gemm import gemm_by_threads
from benchmarks.w7_figures import summary
from psrt.executor.profiling.profile import Profiler
from psrt.executor.strategies import ReduceStrategy

MEMORY = {
    "plain": ({}, 1),
    "memory_optimize": ({"memory_optimize": True}, 1),
    "all_reduce_4": ({}, 4),
    "reduce_4": ({"reduce_strategy": "Reduce"}, 4),
    "reduce_4_memory_optimize": ({"reduce_strategy": "Reduce", "memory_optimize": True}, 4),
}


Feed: TypeAlias = dict[str, object]

FUSED = {"fuse_loss_gradient": True, "fuse_all_optimizer_ops": True, "memory_optimize": True}


def run(args: argparse.Namespace) -> harness.Figures:
    return compare(args) if args.threads is None else run_on(args.threads, args)


def run_on(threads: int, args: argparse.Namespace) -> harness.Figures:
    """The executor on so many threads, a batch of 512 for each, and bare products on as many."""
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
    """Of each round the examples per second, and those of bare products before and after."""
    rounds = []
    for _ in range(args.rounds):
        before = gemm_by_threads(threads, args.seconds)
        reached = speed(step, feeds, args.seconds)
        rounds.append((reached, (before + gemm_by_threads(threads, args.seconds)) / 2))
    return rounds


def compare(args: argparse.Namespace) -> harness.Figures:
    """One thread and two, and all that `w7_figures` makes of the rounds."""
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
    """One round: examples per second, and by how much bare products gained at the least."""
    before = gemm_by_threads(1, seconds), gemm_by_threads(2, seconds)
    speeds = work()
    after = gemm_by_threads(1, seconds), gemm_by_threads(2, seconds)
    return {
        "gemm": (before[0] + after[0]) / 2,
        "gemm_two_threads": (before[1] + after[1]) / 2,
        **speeds,
        "least_gemm_gain": min(before[1] / before[0], after[1] / after[0]),
    }


def alone_executor(program: psrt.Program, loss: str) -> psrt.Executor:
    """Of one thread, over a scope of its own, as are the others."""
    build = psrt.BuildStrategy(**FUSED)
    return psrt.Executor(program, scope_of(program), build_strategy=build, keep=[loss])


def shared_executor(
    program: psrt.Program, loss: str, threads: int, spin_s: float
) -> psrt.ParallelExecutor:
    """A replica on each thread, all with the same parameters."""
    build = psrt.BuildStrategy(reduce_strategy=ReduceStrategy.Reduce, **FUSED)
    how = psrt.ExecutionStrategy(spin_s=spin_s)
    return psrt.ParallelExecutor(program, scope_of(program), threads, build, how, keep=[loss])


def apart_executor(program: psrt.Program, loss: str) -> psrt.ParallelExecutor:
    """Two replicas that do not wait for each other."""
    build = psrt.BuildStrategy(reduce_strategy=ReduceStrategy.Reduce, async_mode=True, **FUSED)
    return psrt.ParallelExecutor(program, scope_of(program), 2, build, keep=[loss])


def scope_of(program: psrt.Program) -> psrt.Scope:
    scope = psrt.Scope()
    scope.init_parameters(program)
    return scope


def speed(step: Callable[..., object], feeds: list[Feed], seconds: float) -> float:
    """Examples per second."""
    step(feeds[-1], roles=w7_model.TRAIN)
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        step(feeds[steps % len(feeds)], roles=w7_model.TRAIN)
        steps += 1
    elapsed = time.perf_counter() - started
    return steps * len(feeds[0]["dense"]) / elapsed  # type: ignore[arg-type]


def speed_apart(executor: psrt.ParallelExecutor, feeds: list[Feed], seconds: float) -> float:
    """Examples per second of `run_from`."""
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
    """The share of a step that no op accounts for."""
    executor.profiler = profiler = Profiler()
    for feed in feeds * 4:
        executor.run(feed, roles=w7_model.TRAIN)
    executor.profiler = None
    spent = profiler.step_time()
    return round(1 - (spent.ops_ns + spent.waits_ns) / spent.wall_ns, 3)


# --- memory ---------------------------------------------------------------------------------------


def memory_of(kind: str, ragged: bool) -> dict[str, float]:
    """In a process of its own, which prints it."""
    command = [sys.executable, "-m", "benchmarks.w7_executor", "--memory-of", kind]
    if ragged:
        command.append("--ragged")
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def print_memory(kind: str, ragged: bool) -> None:
    """What some steps of batches of 2,048 examples took, parameters and all."""
    flags, replicas = MEMORY[kind]
    strategy = ReduceStrategy[str(flags.pop("reduce_strategy", "AllReduce"))]
    build = psrt.BuildStrategy(reduce_strategy=strategy, **flags)  # type: ignore[arg-type]
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
    parser = argparse.ArgumentParser(description=__doc__)
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
