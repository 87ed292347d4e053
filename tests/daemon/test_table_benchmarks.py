"""Benchmarks of tables and kernels as users run them, on sizes that say nothing about speed.

They run in the process of the test, which has everything imported, and so do pservers, but for
those whose memory is measured; trainers that a benchmark starts are processes.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from benchmarks.measuring import harness
from tests.support.live_pservers import live_pservers

pytestmark = pytest.mark.slow

Benchmark: TypeAlias = Callable[..., dict[str, Any]]


@contextlib.contextmanager
def pservers_of_this_process(count: int) -> Iterator[list[str]]:
    with live_pservers(count) as live:
        yield [pserver.endpoint for pserver in live]


@pytest.fixture
def figures_of(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Benchmark:
    """A function that runs `python -m benchmarks.NAME ARGUMENTS` and returns its figures."""
    for name in (*harness.ONE_THREAD, "PYTHONFAULTHANDLER"):
        monkeypatch.setenv(name, "1")  # as they do themselves; this one is undone

    monkeypatch.setattr(harness, "pservers", pservers_of_this_process)
    exits: list[int] = []

    def run(benchmark: str, *arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", [benchmark, *arguments])
        monkeypatch.setattr(sys, "exit", exits.append)
        # Tests that ran before may have imported it; runpy warns of that.
        monkeypatch.delitem(sys.modules, f"benchmarks.{benchmark}", raising=False)
        runpy.run_module(f"benchmarks.{benchmark}", run_name="__main__")
        assert not any(exits)
        return dict(json.loads(capfd.readouterr().out.splitlines()[-1]))

    return run


def test_w3_measures_a_bare_socket_beside_the_pserver(figures_of: Benchmark) -> None:
    flags = ("--elements", "40000", "--parameters", "2", "--seconds", "0.1")

    found = figures_of("w3_dense", *flags, "--socket-seconds", "0", "--carrier", "grpc")

    assert found["exchange_mb_per_s_each_way"] >= found["mb_per_s_each_way"] > 0
    assert found["share_of_socket"] == pytest.approx(
        found["mb_per_s_each_way"] / found["socket_mb_per_s"], abs=1e-3
    )


def test_w4_repeated_gives_the_spread_of_every_figure(figures_of: Benchmark) -> None:
    flags = ("--elements", "4096", "--rounds", "1", "--only", "sgd,lamb", "--torch-python", "")

    found = figures_of("w4_kernels", *flags, "--repeat", "3")

    spread = found["lamb"]["gb_per_s"]
    assert spread["min"] <= spread["median"] <= spread["max"]
    assert found["sgd"]["torch_fused_gb_per_s"] is None


def test_w8_counts_what_rows_cost_and_saves_them(figures_of: Benchmark) -> None:
    found = figures_of("w8_memory", "--rows", "106496", "--optimizers", "sgd")["sgd"]

    assert found["bytes_per_row"] > 0
    assert found["slowest_insert_rows_per_s"] <= found["insert_rows_per_s"]
    assert found["longest_request_ms"] >= found["median_request_ms"]
    assert found["save_s"] > 0
    assert found["shrunk_share"] > 0


def test_rows_by_size_has_a_point_for_every_size(figures_of: Benchmark) -> None:
    axes = figures_of("rows_by_size", "--tiny", "--axes", "width,trainers")["axes"]

    assert {name: list(points) for name, points in axes.items()} == {
        "width": ["1", "16"],
        "trainers": ["1"],
    }
    assert all(point["rows_per_s"] > 0 for points in axes.values() for point in points.values())


def test_latency_is_told_alone_and_under_load(figures_of: Benchmark) -> None:
    found = figures_of("latency", "--trainers", "1", "--seconds", "0.05", "--rows", "2000")

    for name in ("alone", "loaded"):
        assert found[name]["p50_us"] <= found[name]["p99_us"] <= found[name]["max_us"]
        assert len(found[name]["curve"]) == 99
    assert found["load_rows_per_s"] > 0


@pytest.mark.long
def test_the_stress_test_finds_every_number_right(figures_of: Benchmark) -> None:
    found = figures_of("stress", "--seconds", "0.5", "--trainers", "4")

    assert (found["differences"], found["torn_reads"]) == (0, 0)
    assert found["pushes"] > 0
    assert len(found["samples"]) > 10
