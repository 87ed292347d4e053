"""W4: the kernels of every optimizer on one thread, on a dense block and on rows.

    python -m benchmarks.w4_kernels [--elements 16777216] [--rounds 15] [--torch-python PYTHON]

Per optimizer:

    gb_per_s              memory traffic that the formula needs (`traffic_bytes`), on a dense block
    torch_fused_gb_per_s  that of PyTorch's fused kernel; null if torch has none or is missing
    share_of_torch        the first ÷ the second
    m_rows_per_s          million rows of 16 updated per second, in random order in the cache

A round is a step of psrt, then one of torch. Figures are of the fastest round, for both: other
guests of the host can only slow a step.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from psrt.core import specs
from psrt.core.types import F32
from psrt.kernels.optimizers import (
    HEADER_WORDS,
    UPDATES_WORD,
    OptimizerRule,
    RowTable,
    TouchedRows,
    rule_of,
)

ELEMENTS = 16 << 20
WIDTH, ROWS, ROW_REPEATS = 16, 4096, 20
TORCH_PYTHON = "PSRT_BENCH_TORCH_PYTHON"
"""Environment variable with the path of a Python with torch, if this one has none."""

OPTIMIZERS: dict[str, specs.Optimizer] = {
    "sgd": specs.Sgd(),
    "momentum": specs.Momentum(),
    "adagrad": specs.Adagrad(),
    "decayed_adagrad": specs.DecayedAdagrad(),
    "adadelta": specs.Adadelta(),
    "rms_prop": specs.RmsProp(),
    "adam": specs.Adam(),
    "adamw": specs.AdamW(),
    "adamax": specs.Adamax(),
    "ftrl": specs.Ftrl(),
    "lars": specs.LarsMomentum(),
    "lamb": specs.Lamb(),
}
FUSED_IN_TORCH = ("sgd", "momentum", "adagrad", "adam", "adamw")
NORM_READS = {"lars": 2, "lamb": 3}
"""Numbers of arrays that a separate pass for norms reads again: w and g; w, m and v."""


def traffic_bytes(name: str, state_vectors: int) -> int:
    """Bytes per element: the gradient is read, weights and state are read and written."""
    return 4 * (1 + 2 * (1 + state_vectors) + NORM_READS.get(name, 0))


def run(args: argparse.Namespace) -> harness.Figures:
    wanted = args.only.split(",") if args.only else list(OPTIMIZERS)
    with torch_steps(args.torch_python, args.elements) as torch_step:
        return {name: figures(name, args, torch_step) for name in wanted}


def figures(
    name: str, args: argparse.Namespace, torch_step: Callable[[str], float] | None
) -> harness.Figures:
    rule = rule_of(OPTIMIZERS[name])
    ours, theirs = dense_step(rule, args.elements), None
    best = best_torch = float("inf")
    if torch_step is not None and name in FUSED_IN_TORCH:
        theirs = torch_step
    for _ in range(args.rounds):
        best = min(best, ours())
        if theirs is not None:
            best_torch = min(best_torch, theirs(name))
    gigabytes = args.elements * traffic_bytes(name, rule.state_vectors) / 1e9
    return {
        "gb_per_s": round(gigabytes / best, 2),
        "torch_fused_gb_per_s": round(gigabytes / best_torch, 2) if theirs else None,
        "share_of_torch": round(best_torch / best, 3) if theirs else None,
        "m_rows_per_s": round(rows_per_s(rule, args.rounds) / 1e6, 1),
    }


def dense_step(rule: OptimizerRule, elements: int) -> Callable[[], float]:
    """A function that runs an update and returns its seconds, after two runs to warm up."""
    rng = np.random.default_rng(0)
    weights, gradient = (rng.standard_normal(elements, dtype=np.float32) for _ in range(2))
    state: F32 = np.empty((rule.state_vectors, elements), np.float32)
    state[:] = np.reshape(rule.first, (-1, 1))
    updates = 0

    def step() -> float:
        nonlocal updates
        updates += 1
        started = time.perf_counter()
        rule.update_block(weights, state, gradient, 0.01, updates)
        return time.perf_counter() - started

    step()
    step()
    return step


def rows_per_s(rule: OptimizerRule, rounds: int) -> float:
    """Rows updated per second: `ROWS` rows of `WIDTH`, all in the cache."""
    rng = np.random.default_rng(0)
    state_at = HEADER_WORDS + WIDTH
    slab: F32 = np.zeros((ROWS, state_at + rule.state_vectors * WIDTH), np.float32)
    slab[:, HEADER_WORDS:state_at] = rng.standard_normal((ROWS, WIDTH), dtype=np.float32)
    for number, first in enumerate(rule.first):
        slab[:, state_at + number * WIDTH : state_at + (number + 1) * WIDTH] = first
    slab.view(np.int32)[:, UPDATES_WORD] = 1
    slots = rng.permutation(ROWS).astype(np.int32)
    touched = TouchedRows(
        slots, np.arange(ROWS, dtype=np.int32), rng.standard_normal((ROWS, WIDTH), dtype=np.float32)
    )
    table, best = RowTable(slab, HEADER_WORDS, slab, state_at), float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(ROW_REPEATS):
            rule.update_rows(table, touched, 0.01, 1)
        best = min(best, time.perf_counter() - started)
    return ROWS * ROW_REPEATS / best


# --- torch, in a process of its own ---------------------------------------------------------------


def python_with_torch() -> str:
    """This Python if it has torch, else the path in the environment, else an empty string."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return os.environ.get(TORCH_PYTHON, "")


@contextlib.contextmanager
def torch_steps(python: str, elements: int) -> Iterator[Callable[[str], float] | None]:
    """A function that runs a step of a named optimizer in torch and returns its seconds."""
    if not python:
        yield None
        return
    script = Path(__file__).parent / "peers" / "torch_fused.py"
    child = subprocess.Popen(
        [python, str(script), str(elements)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | harness.ONE_THREAD,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    stdin, stdout = child.stdin, child.stdout

    def step(name: str) -> float:
        print(name, file=stdin, flush=True)
        if not (answer := stdout.readline()):
            raise SystemExit(f"{python} ended with exit code {child.wait()} while it ran {script}")
        return float(answer)

    try:
        yield step
    finally:
        stdin.close()
        child.wait(timeout=30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--elements", type=int, default=ELEMENTS)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"of {', '.join(OPTIMIZERS)}")
    parser.add_argument(
        "--torch-python", default=python_with_torch(), help=f"default: this one, or ${TORCH_PYTHON}"
    )
    harness.main(parser, run)
