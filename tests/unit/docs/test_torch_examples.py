"""The PyTorch examples learn from generated data, in one process and with pservers."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="psrt.torch needs torch")

from tests.support.pserver import daemon

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def made_by(script: str, *arguments: str) -> Callable[[Path], None]:
    """Return a function that writes data to a folder as `python script FOLDER …` does."""

    def make(folder: Path) -> None:
        main = runpy.run_path(str(EXAMPLES / script))["main"]
        main(folder, *map(int, arguments))

    return make


CRITEO = made_by("torch/make_criteo.py", "8000")
RATINGS = made_by("recommender/make_data.py")
WORDS = made_by("word2vec/make_data.py")
SHOPPERS = made_by("din/make_data.py", "16000")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """Return the result of an example on data of a folder."""
    monkeypatch.syspath_prepend(EXAMPLES / "torch")

    def run(name: str, make: Callable[[Path], None], *arguments: str) -> float:
        make(tmp_path / "data")
        names: dict[str, Any] = runpy.run_path(str(EXAMPLES / "torch" / f"{name}.py"))
        files = [str(tmp_path / "data" / f"{part}-*") for part in ("train", "test")]
        result: float = names["main"]([*files, *arguments])
        return result

    return run


def test_dlrm_beats_chance(run: Callable[..., float]) -> None:
    assert run("dlrm", CRITEO, "--steps", "60") > 0.6


def test_two_towers_find_liked_films(run: Callable[..., float]) -> None:
    assert run("two_towers", RATINGS, "--steps", "100") > 0.12  # by chance 20 of 400


def test_words_predict_their_neighbours(run: Callable[..., float]) -> None:
    assert run("word2vec", WORDS, "--steps", "80") < 6 * 0.69


def test_din_beats_chance_on_two_pservers(run: Callable[..., float], tmp_path: Path) -> None:
    with ExitStack() as stack:
        places = [tmp_path / "one", tmp_path / "other"]
        for place in places:
            place.mkdir()
        servers = [stack.enter_context(daemon(place)) for place in places]
        endpoints = ",".join(server.endpoint for server in servers)

        assert run("din", SHOPPERS, "--steps", "80", "--endpoints", endpoints) > 0.58
        assert [server.exit_code() for server in servers] == [0, 0]
