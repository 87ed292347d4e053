"""Benchmarks of tables and kernels as users run them, on sizes that say nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def figures_of(benchmark: str, *arguments: str) -> dict[str, Any]:
    """What it prints last."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def test_w3_measures_a_bare_socket_beside_the_pserver() -> None:
    flags = ("--elements", "40000", "--parameters", "2", "--seconds", "0.1")

    found = figures_of("w3_dense", *flags, "--socket-seconds", "0", "--carrier", "grpc")

    assert found["mb_per_s_each_way"] > 0
    assert found["share_of_socket"] == pytest.approx(
        found["mb_per_s_each_way"] / found["socket_mb_per_s"], abs=1e-3
    )


def test_w4_repeated_gives_the_spread_of_every_figure() -> None:
    flags = ("--elements", "4096", "--rounds", "1", "--only", "sgd,lamb", "--torch-python", "")

    found = figures_of("w4_kernels", *flags, "--repeat", "3")

    spread = found["lamb"]["gb_per_s"]
    assert spread["min"] <= spread["median"] <= spread["max"]
    assert found["sgd"]["torch_fused_gb_per_s"] is None


def test_w8_counts_what_rows_cost_and_saves_them() -> None:
    found = figures_of("w8_memory", "--rows", "106496", "--optimizers", "sgd")["sgd"]

    assert found["bytes_per_row"] > 0
    assert found["slowest_insert_rows_per_s"] <= found["insert_rows_per_s"]
    assert found["longest_request_ms"] >= found["median_request_ms"]
    assert found["save_s"] > 0
    assert found["shrunk_share"] > 0


def test_rows_by_size_has_a_point_for_every_size() -> None:
    axes = figures_of("rows_by_size", "--tiny", "--axes", "width,trainers")["axes"]

    assert {name: list(points) for name, points in axes.items()} == {
        "width": ["1", "16"],
        "trainers": ["2"],
    }
    assert all(point["rows_per_s"] > 0 for points in axes.values() for point in points.values())


def test_latency_is_told_alone_and_under_load() -> None:
    found = figures_of("latency", "--trainers", "1", "--seconds", "0.3", "--rows", "2000")

    for name in ("alone", "loaded"):
        assert found[name]["p50_us"] <= found[name]["p99_us"] <= found[name]["max_us"]
        assert len(found[name]["curve"]) == 99
    assert found["load_rows_per_s"] > 0


def test_the_stress_test_finds_every_number_right() -> None:
    found = figures_of("stress", "--seconds", "2", "--trainers", "4")

    assert (found["differences"], found["torn_reads"]) == (0, 0)
    assert found["pushes"] > 0
    assert len(found["samples"]) > 10
