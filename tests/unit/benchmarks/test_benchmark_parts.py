"""Computations of benchmarks: scores of word vectors, rows of each trainer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy_by_mode
from benchmarks.measuring import limited_network
from benchmarks.workloads import w7_figures, word_scores

CAPITALS = (
    ": capitals\nAthens Greece Oslo Norway\nOslo Norway Rome Italy\nRome Italy Oslo Nowhere\n"
)
WORDS = ["athens", "oslo", "rome", "greece", "norway", "italy", "the"]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.txt"
    path.write_text(CAPITALS)
    return path


def vectors_with_a_rule() -> np.ndarray:
    """A country is its capital and a step aside, the same for all."""
    capitals = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    capitals = np.hstack([capitals, np.full((3, 2), [2, 0])])
    countries = capitals + np.array([0, 0, 0, -2, 2])
    the = np.array([[-1, -1, -1, 0, 0]])
    return np.concatenate([capitals, countries, the]).astype(np.float32)


def test_vectors_that_follow_the_rule_answer_every_question(questions: Path) -> None:
    found = word_scores.scores(vectors_with_a_rule(), WORDS, questions)

    assert found == {"questions": 2, "accuracy": 1.0, "top_10": 1.0, "kinds": 1.0}


def test_words_nearer_to_the_other_kind_score_less_than_chance(questions: Path) -> None:
    angles = np.array([0.0, 2.0, 4.0, 0.1, 2.1, 4.1, 1.0])  # each capital beside its country
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    assert word_scores.scores(vectors, WORDS, questions)["kinds"] < 0.5


def test_the_kinds_score_is_the_share_of_pairs_in_the_right_order(questions: Path) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((len(WORDS), 4))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    capitals, countries = (0, 1, 2), (3, 4, 5)
    alike = [cosine[i, j] for kind in (capitals, countries) for i in kind for j in kind if i < j]
    apart = [cosine[i, j] for i in capitals for j in countries]

    found = word_scores.scores(vectors, WORDS, questions)["kinds"]

    assert found == pytest.approx(np.mean([a > b for a in alike for b in apart]), abs=1e-4)


def test_questions_without_any_known_word_are_refused(questions: Path) -> None:
    with pytest.raises(SystemExit, match="no question"):
        word_scores.scores(np.ones((1, 2)), ["the"], questions)


def test_batches_of_all_trainers_are_the_batch_of_one_alone(tmp_path: Path) -> None:
    rows = [b"%d\n" % number for number in range(2 * accuracy_by_mode.BATCH + 300)]

    accuracy_by_mode.deal(rows, tmp_path, trainers=2, seed=5)

    whole, first, second = (
        (tmp_path / name).read_bytes().splitlines()
        for name in ("whole.txt", "share-0.txt", "share-1.txt")
    )
    assert sorted(whole) == sorted(row.strip() for row in rows)
    assert whole[:512] == first[:256] + second[:256]
    assert whole[512:1024] == first[256:512] + second[256:512]
    assert whole[1024:] == first[512:] + second[512:]


def test_modes_are_compared_by_their_means() -> None:
    aucs = {"local": [0.70, 0.72], "sync": [0.71, 0.714], "geo": [0.70, 0.71]}

    sync, geo = (accuracy_by_mode.figures(mode, aucs) for mode in ("sync", "geo"))

    assert (sync["minus_local"], sync["as_claimed"]) == (0.002, True)
    assert (geo["minus_sync"], geo["as_claimed"]) == (-0.007, False)


def test_only_root_limits_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(SystemExit, match="needs root"), limited_network.limited(["p0"], 200.0):
        pass


def test_w7_tells_rounds_on_free_cores_by_bare_products_alone() -> None:
    def measured(two_threads: float, least_gemm_gain: float) -> dict[str, float]:
        speeds = {"gemm": 10.0, "one_thread": 8.0, "two_threads_async": 16.0}
        return {
            **speeds,
            "gemm_two_threads": 10.0 * least_gemm_gain,
            "two_threads": two_threads,
            "least_gemm_gain": least_gemm_gain,
        }

    rounds = [measured(16.0, 1.95), measured(8.0, 1.2), measured(12.0, 1.9), measured(8.0, 1.0)]
    figures = w7_figures.summary(rounds)

    assert (figures["rounds"], figures["free_rounds"]) == (4, 2)
    assert figures["speedup"] == 1.25
    assert figures["speedup_free"] == 1.75
    assert w7_figures.summary(rounds[3:])["speedup_free"] is None
