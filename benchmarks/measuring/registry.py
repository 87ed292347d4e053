"""The runs of `bin/bench`, and the figures in its table, each with a limit of the machine.

Plain data: a `Run` is one command; `SHOWN` lists, by workload, the numbers of its JSON that become
lines of the table. A limit is the speed of the machine without psrt, in the unit of the figure. It
is measured in the same run, by the benchmark itself or by `benchmarks.limits`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]
LIMITS = "limits"

ROW_BYTES = 2 * (8 + 16 * 4)
"""Bytes of a row of 16 that is pulled and pushed: id and row each way."""


@dataclass(frozen=True)
class Run:
    """`python -m benchmarks.{module} {flags}`; `quick` are further flags for a short run."""

    workload: str
    what: str
    module: str
    flags: str = ""
    quick: str = ""


@dataclass(frozen=True)
class Limit:
    """The speed of the machine, from the figures of the benchmark and of `limits`."""

    name: str
    of: Callable[[Figures, Figures], float]


@dataclass(frozen=True)
class Shown:
    """A line of the table: the number at `path` ("sgd.gb_per_s"), in `unit`."""

    what: str
    path: str
    unit: str
    limit: Limit | None = None


RUNS = (
    Run("w1", "async", "w1_ctr", "--mode async", "--seconds 4"),
    Run("w1", "sync", "w1_ctr", "--mode sync", "--seconds 4"),
    Run("w1", "geo", "w1_ctr", "--mode geo", "--seconds 8"),
    Run("w1", "async, Adagrad", "w1_ctr", "--mode async --optimizer adagrad", "--seconds 4"),
    Run("w1", "async, Adam", "w1_ctr", "--mode async --optimizer adam", "--seconds 4"),
    Run("w2", "unique ids", "w2_rows", "", "--seconds 2"),
    Run("w2", "Zipf ids", "w2_rows", "--ids zipf", "--seconds 2"),
    Run("w2", "unique ids, Adagrad", "w2_rows", "--optimizer adagrad", "--seconds 2"),
    Run("w2", "unique ids, Adam", "w2_rows", "--optimizer adam", "--seconds 2"),
    Run("w2", "unique ids, grpc", "w2_rows", "--carrier grpc", "--seconds 2"),
    Run("w3", "stream", "w3_dense", "", "--seconds 2"),
    Run("w3", "grpc", "w3_dense", "--carrier grpc", "--seconds 2"),
    Run("w4", "", "w4_kernels", "", "--rounds 5"),
    Run("w5", "1 thread", "w5_feed", "", "--rows 56000"),
    Run("w5", "2 threads", "w5_feed", "--threads 2", "--rows 56000"),
    Run("w6", "async", "w6_word2vec", "", "--sentences 5000"),
    Run("w7", "", "w7_executor", "--no-memory", "--rounds 5"),
    Run("w8", "", "w8_memory", "", "--rows 500000"),
    Run("latency", "", "latency", "", "--seconds 2"),
    Run("rows_by_size", "", "rows_by_size", "", "--quick"),
    Run("stress", "", "stress", "", "--seconds 20"),
)
UNLESS_NAMED = ("rows_by_size", "stress")
"""Workloads that run only by name: they take minutes and have no line in the table."""

BARE_PRODUCTS = Limit("bare matrix products", lambda own, _: float(own["gemm_examples_per_s"]))
SOCKET_ROWS = Limit(
    "one way of a bare socket", lambda _, limits: limits["socket_mb_per_s"] * 1e6 / ROW_BYTES
)
SOCKET = Limit("one way of a bare socket", lambda own, _: float(own["socket_mb_per_s"]))
MEMCPY = Limit("memcpy, read and written", lambda _, limits: 2 * limits["memcpy_gb_per_s"])
ROUND_TRIP = Limit("round trip of a bare socket", lambda own, _: own["socket_round_trip_us"])
ONE_THREAD_PRODUCTS = Limit("bare matrix products", lambda own, _: float(own["speeds"]["gemm"]))

KERNELS = (
    "sgd",
    "momentum",
    "adagrad",
    "decayed_adagrad",
    "adadelta",
    "rms_prop",
    "adam",
    "adamw",
    "adamax",
    "ftrl",
    "lars",
    "lamb",
)
SHOWN: dict[str, tuple[Shown, ...]] = {
    "w1": (Shown("CTR network", "examples_per_s", "examples/s", BARE_PRODUCTS),),
    "w2": (Shown("rows pulled and pushed", "rows_per_s", "rows/s", SOCKET_ROWS),),
    "w3": (
        Shown("dense, each way", "mb_per_s_each_way", "MB/s", SOCKET),
        Shown("dense, without making gradients", "exchange_mb_per_s_each_way", "MB/s", SOCKET),
    ),
    "w4": tuple(Shown(f"kernel {name}", f"{name}.gb_per_s", "GB/s", MEMCPY) for name in KERNELS)
    + tuple(Shown(f"kernel {name}, rows", f"{name}.m_rows_per_s", "M rows/s") for name in KERNELS),
    "w5": (Shown("text to batches", "mb_per_s", "MB/s"),),
    "w6": (Shown("word vectors", "words_per_s", "words/s"),),
    "w7": (Shown("executor", "examples_per_s", "examples/s", ONE_THREAD_PRODUCTS),),
    "w8": (
        Shown("memory, SGD", "sgd.bytes_per_row", "bytes/row"),
        Shown("memory, Adam", "adam.bytes_per_row", "bytes/row"),
        Shown("inserts, SGD", "sgd.insert_rows_per_s", "rows/s"),
        Shown("saving, SGD", "sgd.save_s", "s"),
        Shown("left after half was dropped", "sgd.shrunk_share", "of memory"),
    ),
    "latency": (
        Shown("pull of 1 row, median", "alone.p50_us", "µs", ROUND_TRIP),
        Shown("under load, 99 of 100", "loaded.p99_us", "µs"),
    ),
}
