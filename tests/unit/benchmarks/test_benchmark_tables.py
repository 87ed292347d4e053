"""Computations of the table benchmarks: ids, traffic, sums, the table of `bin/bench`."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as bench
from benchmarks import stress, w4_kernels, w8_memory
from benchmarks.measuring import harness
from benchmarks.measuring.registry import KERNELS, RUNS, SHOWN, Run
from benchmarks.workloads import zipf_text
from benchmarks.workloads.trainers import distinct_ids
from psrt.cli import bench as command
from psrt.core.errors import ConfigError

LIMITS = {"socket_mb_per_s": 1440, "memcpy_gb_per_s": 5.0}

# --- the table ------------------------------------------------------------------------------------


def test_a_figure_stands_beside_what_the_machine_does_without_psrt() -> None:
    line = bench.line(Run("w2", "Zipf ids", "w2_rows"), SHOWN["w2"][0], {"rows_per_s": 4e6}, LIMITS)

    assert " ".join(line.split()) == (
        "W2 rows pulled and pushed, Zipf ids 4,000,000 rows/s "
        "0.40 of 10,000,000: one way of a bare socket"
    )


def test_the_table_of_repeated_runs_shows_medians() -> None:
    spread = {"min": 1.0, "median": 2.5, "max": 4.0}

    (memory, *_) = bench.lines(
        Run("w8", "", "w8_memory"), {"sgd": {"bytes_per_row": spread}, "adam": {}}, LIMITS
    )

    assert memory.split() == ["W8", "memory,", "SGD", "2.5", "bytes/row"]


def test_what_was_not_measured_has_no_number() -> None:
    line = bench.line(Run("w6", "async", "w6_word2vec"), SHOWN["w6"][0], {}, LIMITS)

    assert line.split()[-2:] == ["-", "words/s"]


def test_every_run_is_a_module_and_every_shown_workload_is_run() -> None:
    modules = {run.module for run in RUNS}

    assert [m for m in modules if importlib.util.find_spec(f"benchmarks.{m}") is None] == []
    assert set(SHOWN) <= {run.workload for run in RUNS}


def test_the_kernels_of_the_table_are_those_of_w4() -> None:
    assert list(KERNELS) == list(w4_kernels.OPTIMIZERS)


def test_lists_of_repeated_runs_become_medians() -> None:
    runs = [{"curve": [1, 5]}, {"curve": [3, 4]}, {"curve": [2, 9]}]

    assert harness.merge(runs) == {"curve": [2, 5]}


# --- psrt bench -----------------------------------------------------------------------------------


def test_psrt_bench_hands_its_options_to_the_benchmarks() -> None:
    _, module, name, *rest = command.command(("w2", "w3"), True, 3, "/tmp/f.json")

    assert (module, name) == ("-m", "benchmarks")
    assert rest == ["w2", "w3", "--quick", "--repeat=3", "--json=/tmp/f.json"]
    assert bench.parser_of().parse_args(rest).workloads == ["w2", "w3"]


def test_a_package_without_its_source_says_where_benchmarks_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "_CHECKOUT", tmp_path)

    with pytest.raises(ConfigError, match="not of the installed package"):
        command.checkout()


# --- what is measured -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "state", "floats"),
    [("sgd", 0, 3), ("adagrad", 1, 5), ("adam", 2, 7), ("lars", 1, 5 + 2), ("lamb", 2, 7 + 3)],
)
def test_traffic_is_what_the_formula_reads_and_writes(name: str, state: int, floats: int) -> None:
    assert w4_kernels.traffic_bytes(name, state) == 4 * floats


@pytest.mark.parametrize("rows", [1, 2, 10, 1000, 6_180])
def test_ids_of_a_step_are_distinct(rows: int) -> None:
    ids = distinct_ids(rows, rows, seed=4)

    np.testing.assert_array_equal(np.sort(ids), np.arange(rows))


def test_new_ids_are_distinct_and_lie_anywhere() -> None:
    ids = w8_memory.scattered(1_000, 3_000)

    assert len(np.unique(ids)) == 2_000
    assert min(ids) < -(1 << 62)
    assert max(ids) > 1 << 62


def test_the_text_of_w6_follows_zipfs_law(tmp_path: Path) -> None:
    lines = zipf_text.written(tmp_path / "text", words=100_000).read_text().splitlines()
    words = " ".join(lines).split()
    expected = 1 / sum(1 / rank for rank in range(1, zipf_text.VOCABULARY + 1))

    assert {len(line.split()) for line in lines} == {20}
    assert words.count("w0") / len(words) == pytest.approx(expected, rel=0.05)
    assert words.count("w0") / words.count("w9") == pytest.approx(10, rel=0.25)


# --- the stress test's own sums -------------------------------------------------------------------


def test_a_row_that_shows_half_an_update_is_torn() -> None:
    rows = np.outer([3, -2, 0], stress.multiples(20)).astype(np.float32)
    rows[1, 5] += 6

    assert stress.torn(rows) == 1


def test_sums_that_float32_would_round_are_refused() -> None:
    largest = (1 << 24) // 16

    np.testing.assert_array_equal(stress.exact(np.array([largest - 1])), [largest - 1])
    with pytest.raises(SystemExit, match="shorter"):
        stress.exact(np.array([-largest]))


class Holding:
    """Stands for the pservers: tables that hold what they are told."""

    def __init__(self, dense: float, rows: dict[str, np.ndarray]) -> None:
        self._dense, self._rows = dense, rows

    def pull_dense(self, into: dict[str, np.ndarray]) -> None:
        into[stress.DENSE][:] = self._dense * stress.multiples(stress.DENSE_SIZE)

    def pull_rows(self, wanted: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], None]:
        return {name: self._rows[name] for name in wanted}, None


def test_every_number_that_is_not_minus_the_sum_is_counted() -> None:
    sums = [stress.Sums(dense=2), stress.Sums(dense=-5)]
    sums[0].rows["hot"][3] = 7
    rows = {t.name: np.zeros((len(t.ids), t.width), np.float32) for t in stress.TABLES}
    rows["hot"][3] = -7 * stress.multiples(5)

    right = stress.differences_of(Holding(3.0, rows), sums)  # type: ignore[arg-type]
    rows["wide"][0, :2] = 1
    wrong = stress.differences_of(Holding(3.0, rows), sums)  # type: ignore[arg-type]

    assert (right, wrong) == (0, 2)


def test_steadiness_ignores_the_start() -> None:
    samples = [[float(s), 100.0 + min(s, 2), 20 - (s == 0), 30.0] for s in range(30)]

    found = stress.steadiness(samples)

    assert found["threads"] == [20, 20]
    assert math.isclose(found["resident_growth"], 1.0)
    assert math.isclose(found["resident_mib_per_minute"], 0.0, abs_tol=0.01)


def test_steadiness_tells_what_a_leak_adds_in_a_minute() -> None:
    samples = [[float(s), 100.0 + s / 30, 20.0, 30.0] for s in range(30)]

    assert math.isclose(stress.steadiness(samples)["resident_mib_per_minute"], 2.0)
