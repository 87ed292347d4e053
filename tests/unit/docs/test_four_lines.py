"""A plain PyTorch script and psrt's differ by four lines, those that README shows."""

from __future__ import annotations

import difflib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = [ROOT / "examples" / "torch_ctr" / f"{name}.py" for name in ("plain", "with_psrt")]
BLIND_LOSS = 0.69


def changed() -> list[str]:
    """Lines that are new or gone, without the docstring."""
    plain, ours = (path.read_text().split('"""', 2)[2].splitlines() for path in SCRIPTS)
    lines = list(difflib.unified_diff(plain, ours, n=0, lineterm=""))[2:]
    return [line for line in lines if line[0] in "+-" and line[1:].strip()]


def test_four_lines_differ_and_readme_shows_them() -> None:
    (shown,) = re.findall(r"```diff\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    assert len([line for line in changed() if line.startswith("+")]) == 4
    assert [re.sub(r"([+-])\s+", r"\1", line) for line in changed()] == shown.splitlines()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_both_scripts_learn(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="psrt.torch needs torch")

    runpy.run_path(str(path), run_name="__main__")

    losses = [float(each) for each in re.findall(r"loss (\S+)", capsys.readouterr().out)]
    assert losses[-1] < losses[0] < BLIND_LOSS
