"""The notebooks of the examples run from their first cell to their last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT

FOLDER = ROOT / "examples" / "notebook"
NOTEBOOK, TORCH_NOTEBOOK = FOLDER / "likes.ipynb", FOLDER / "torch.ipynb"


def outputs_of(path: Path, folder: Path) -> list[Any]:
    """The outputs of the code cells of a notebook that runs in `folder`, in order."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The outputs of the notebook without PyTorch."""
    return outputs_of(NOTEBOOK, tmp_path_factory.mktemp("notebook"))


def text_of(outputs: Any) -> str:
    return "".join(
        each.get("text", "") or each.get("data", {}).get("text/plain", "") for each in outputs
    )


def test_the_notebook_trains_and_the_saved_model_predicts_the_same(executed: list[Any]) -> None:
    aucs, difference = eval(text_of(executed[2])), text_of(executed[5])

    assert "epoch 3" in text_of(executed[1])
    assert max(aucs) > 0.8
    assert "0.0" in difference


def test_an_error_in_a_notebook_ends_at_the_users_line(executed: list[Any]) -> None:
    (error,) = executed[-1]

    shown = "\n".join(error["traceback"])
    assert "layers.fc" in shown
    assert "psrt/graph" not in shown
    assert "dense.py" not in shown


def test_the_notebook_of_pytorch_trains_and_its_export_predicts_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="psrt.torch needs torch")

    outputs = outputs_of(TORCH_NOTEBOOK, tmp_path)

    first, last = eval(text_of(outputs[2]))
    assert last < first
    assert text_of(outputs[3]) == "(3, 8)"
    module, difference = eval(text_of(outputs[4]))
    assert module == "torch.nn.modules.sparse"
    assert difference < 1e-6


@pytest.mark.parametrize("path", [NOTEBOOK, TORCH_NOTEBOOK], ids=lambda path: path.stem)
def test_the_stored_notebooks_have_no_outputs(path: Path) -> None:
    assert '"outputs": []' in path.read_text()
    assert '"output_type"' not in path.read_text()
