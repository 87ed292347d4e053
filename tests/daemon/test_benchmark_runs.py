"""Benchmarks as users run them, on sizes that say nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SENTENCES, LENGTH = 500, 100
"""Enough that a few words are left of each sentence, for these are frequent ones."""
QUESTIONS = "cat dog cow fox\neats sees wants finds\n"


def figures_of(benchmark: str, *arguments: str, timeout_s: float = 150.0) -> dict[str, Any]:
    """The JSON object in the last line of a benchmark's output."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def test_benchmarks_run_as_files_from_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "w2_rows.py"), "--help"]

    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert ran.returncode == 0, ran.stderr
    assert "rows_per_s" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_executor_is_measured_on_some_threads(threads: str) -> None:
    found = figures_of("w7_executor", "--threads", threads, "--rounds", "1", "--seconds", "0.05")

    assert found["examples_per_s"] > 0
    assert found["share_of_gemm"] > 0


@pytest.mark.long
@pytest.mark.slow
def test_accuracy_by_mode_tells_how_far_sync_is_from_local() -> None:
    sample = str(ROOT / "examples" / "criteo" / "sample.tsv")

    modes = figures_of("accuracy_by_mode", sample, "--modes", "local,sync", "--seeds", "1")["modes"]

    assert modes["sync"]["minus_local"] == pytest.approx(0, abs=0.02)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_stopped_training_goes_on_with_other_processes_and_counts_each_example() -> None:
    sample = str(ROOT / "examples" / "criteo" / "sample.tsv")
    flags = "--batch", "4", "--pservers", "2,3", "--trainers", "2,1", "--stops", "0.3"

    found = figures_of("resumed_accuracy", sample, *flags, timeout_s=380.0)

    first, second = found["examples"]["attempts"]
    assert 0 < first < found["examples"]["rows"]
    assert first + second == found["examples"]["whole"] == found["examples"]["rows"]
    assert all(0 < auc < 1 for auc in found["auc"].values())


@pytest.mark.slow
def test_word2vec_is_timed_and_its_vectors_are_scored(tmp_path: Path) -> None:
    text, questions = tmp_path / "text", tmp_path / "questions"
    words = ["the", "cat", "dog", "cow", "fox", "eats", "sees", "wants", "finds"]
    lines = (" ".join(words[i * j % 9] for j in range(LENGTH)) for i in range(SENTENCES))
    text.write_text("\n".join(lines))
    questions.write_text(QUESTIONS)

    found = figures_of("w6_word2vec", str(text), "--mode", "async", "--questions", str(questions))

    assert 0 < found["words"] < LENGTH * SENTENCES
    assert found["words_per_s"] > 0
    assert found["bytes_per_word"] > 0
    assert found["scores"]["questions"] == 2


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_pserver_is_timed_until_training_goes_on() -> None:
    found = figures_of("recovery", "--rows", "30000", "--kills", "1", "--cut-every", "0.5")

    assert len(found["gaps_s"]) == 2  # of both trainers
    assert found["gap_worst_s"] >= found["gap_median_s"] > 0
    assert found["phases_median_s"]["whole"] > found["phases_median_s"]["load"] > 0
