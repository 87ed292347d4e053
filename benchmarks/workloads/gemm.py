"""The ceiling of W1 and W7: the network's matrix products in numpy, with preallocated outputs."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.workloads.ctr_data import BATCH, DENSE, HIDDEN, SLOTS, WIDTH

SIZES = (SLOTS * WIDTH + DENSE, *HIDDEN, 1)


def gemm_figures(seconds: float) -> dict[str, float]:
    """Speed of forward, weight- and data-gradient products, batch 512, one BLAS thread."""
    products = _products(threading.get_ident())
    for left, right, out in products:
        np.matmul(left, right, out=out)
    steps, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        for left, right, out in products:
            np.matmul(left, right, out=out)
        steps += 1
    return {
        "examples_per_s": steps * BATCH / (time.perf_counter() - started),
        "cpu_ms_per_step": (time.process_time() - cpu) / steps * 1e3,
    }


def gemm_by_threads(threads: int, seconds: float) -> float:
    """Examples per second of threads that multiply concurrently, each with its own arrays."""
    measured = _pool(threads).map(gemm_figures, [seconds] * threads)
    return sum(figures["examples_per_s"] for figures in measured)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """A cached pool: creating threads and arrays takes longer than a short measurement."""
    return ThreadPoolExecutor(threads)


@functools.cache
def _products(thread: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(left, right, out) of each product; each thread has its own."""
    products, rng = [], np.random.default_rng(0)
    for fan_in, fan_out in itertools.pairwise(SIZES):
        x = rng.standard_normal((BATCH, fan_in), dtype=np.float32)
        w = rng.standard_normal((fan_in, fan_out), dtype=np.float32)
        dy = rng.standard_normal((BATCH, fan_out), dtype=np.float32)
        products += [
            (x, w, np.empty_like(dy)),
            (x.T, dy, np.empty_like(w)),
            (dy, w.T, np.empty_like(x)),
        ]
    return products
