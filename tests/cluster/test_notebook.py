"""The notebook of the examples runs from its first cell to its last."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support.processes import ROOT

NOTEBOOK = ROOT / "examples" / "notebook" / "likes.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The outputs of the code cells, in order."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


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


def test_the_stored_notebook_has_no_outputs() -> None:
    assert '"outputs": []' in NOTEBOOK.read_text()
    assert '"output_type"' not in NOTEBOOK.read_text()
