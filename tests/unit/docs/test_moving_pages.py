"""The Python blocks of the pages about moving to psrt.torch run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from tests.support.pages import page  # noqa: E402
from tests.unit.pytorch.test_from_torchrec import BAGS, RecBags, features  # noqa: E402


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(name: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names after the blocks of a page."""
    for block in re.findall(r"```python\n(.*?)```", page(f"how-to/{name}"), re.DOTALL):
        exec(compile(block, name, "exec"), names)
    return names


def test_from_torchrec() -> None:
    names = run("from-torchrec.md", {"ebc": RecBags(BAGS), "features": features()})

    assert names["pooled"].shape == (2, 12)
    assert (Path("rows") / "manifest.json").exists()


def test_from_embedding_bag() -> None:
    names = run("from-embedding-bag.md", {})

    changed = (names["back"].weight != names["bag"].weight).any(dim=1)
    assert set(changed.nonzero().flatten().tolist()) == set(names["ids"].flatten().tolist())


def test_from_persia() -> None:
    train = run("from-persia.md", {})["train"]
    examples = [
        {"user": n % 7, "clicked": list(range(n % 5)), "label": float(n % 7 > 3)}
        for n in range(1280)
    ]

    with pt.local():
        assert train(examples) < 0.69
