"""Every Python block of the documentation runs as it stands, after hidden preparations of its page.

Addresses of other hosts become free ports of this one; nothing else in a block is changed.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt
import psrt.fluid as fluid
from psrt import layers
from psrt.cli import main
from psrt.config import overrides
from psrt.trainer.models import export_onnx
from tests.support.fluid_process import fresh
from tests.support.live_pservers import free_port
from tests.support.pages import DOCS, page
from tests.support.pserver import daemon

__all__ = ["fresh"]

BLOCK = re.compile(r"```python[^\n]*\n(.*?)```", re.S)
ELSEWHERE = {
    "explanation/executor.md": "tests/unit/docs/test_executor_doc.py",
    "how-to/checkpoint-and-resume.md": "tests/cluster/test_executor_cuts.py",
    "how-to/from-embedding-bag.md": "tests/unit/docs/test_moving_pages.py",
    "how-to/from-persia.md": "tests/unit/docs/test_moving_pages.py",
    "how-to/from-torchrec.md": "tests/unit/docs/test_moving_pages.py",
    "how-to/train-from-python.md": "tests/unit/docs/test_train_from_python_doc.py",
    "how-to/train-pytorch-models.md": "tests/unit/docs/test_train_pytorch_doc.py",
    "reference/fluid.md": "tests/unit/fluid/test_fluid_doc.py",
    "reference/layers.md": "tests/unit/docs/test_layers_doc.py",
    "reference/tables.md": "tests/unit/docs/test_tables_doc.py",
    "tutorials/a-working-day.md": "tests/cluster/test_tutorials.py",
    "tutorials/from-scikit-learn.md": "tests/cluster/test_tutorials.py",
    "tutorials/serve-a-model.md": "tests/cluster/test_tutorials.py",
    "tutorials/train-incrementally.md": "tests/cluster/test_tutorials.py",
    "tutorials/write-a-job.md": "tests/cluster/test_tutorial_doc.py",
    "tutorials/your-csv.md": "tests/cluster/test_tutorials.py",
}
"""Pages whose blocks another test runs."""

Names = dict[str, Any]
RUNNERS: dict[str, Callable[..., None]] = {}


def runs(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a function that prepares and runs the blocks of a page."""

    def enter(runner: Callable[..., None]) -> Callable[..., None]:
        RUNNERS[name] = runner
        return runner

    return enter


def blocks(name: str) -> list[str]:
    return BLOCK.findall(page(name))


def run(text: str, names: Names) -> Names:
    exec(compile(text, "a page", "exec"), names)
    return names


def line() -> tuple[psrt.Program, Any]:
    """A linear regression of x (n, 3)."""
    with psrt.program(seed=1) as program:
        x, y = layers.data("x", (3,)), layers.data("y", (1,))
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
        psrt.optimizer.Sgd(0.01).minimize(loss)
    return program, loss


def feeds(count: int) -> list[dict[str, Any]]:
    return [{"x": np.ones((4, 3), np.float32), "y": np.ones((4, 1), np.float32)}] * count


def test_every_page_with_python_is_run_by_a_test() -> None:
    names = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    with_python = {name for name in names if blocks(name)}

    assert with_python == RUNNERS.keys() | ELSEWHERE.keys()
    assert RUNNERS.keys() & ELSEWHERE.keys() == set()
    for name, test in ELSEWHERE.items():
        text = (DOCS.parent / test).read_text()
        assert Path(name).name in text or f'"{Path(name).stem}"' in text, (name, test)


@runs("how-to/train-without-pservers.md")
def _collective(folder: Path, patch: pytest.MonkeyPatch) -> None:
    first, second = blocks("how-to/train-without-pservers.md")
    here = "127.0.0.1:6170"
    for name, value in {"_ID": "0", "S_NUM": "1", "_ENDPOINTS": here}.items():
        patch.setenv(f"PADDLE_TRAINER{name}", value)
    patch.setenv("PADDLE_CURRENT_ENDPOINT", here)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        names = run(first, {})
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, y = (fluid.layers.data(name, [size]) for name, size in (("x", 13), ("y", 1)))
        cost = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
        names["loss"] = fluid.layers.mean(cost)
        run(second, names)


@runs("how-to/predict-and-export.md")
def _predict(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "likes.py").write_text(
        re.findall(
            r"```python title=\"likes.py\"\n(.*?)```", page("tutorials/write-a-job.md"), re.S
        )[0]
    )
    toml = re.findall(
        r"```toml title=\"likes.toml\"\n(.*?)```", page("tutorials/write-a-job.md"), re.S
    )
    (folder / "likes.toml").write_text(toml[0])
    rows = "user,item,liked\n" + "u894,i415,1\nu17,i2,0\n" * 100
    for each in ("train.csv", "test.csv"):
        (folder / each).write_text(rows)
    assert main.run(["trainer", "--local", "--save", "model", "likes.toml"]) == 0
    export_onnx(psrt.load_inference_model("model"), folder / "model.onnx")
    ids = np.array([[1], [2]])
    names: Names = {"feed": {"user": ids, "item": ids}}
    for block in blocks("how-to/predict-and-export.md"):
        run(block, names)


@runs("how-to/profile-a-job.md")
def _profile(folder: Path, patch: pytest.MonkeyPatch) -> None:
    program, loss = line()
    with psrt.LocalExecutor(program) as executor:
        (block,) = blocks("how-to/profile-a-job.md")
        run(block, {"executor": executor, "feed": feeds(1)[0], "loss": loss})
    assert (folder / "out.json").exists()


@runs("how-to/read-data.md")
def _generator(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "stdin", io.StringIO("1 a bcd\n"))
    out = io.StringIO()
    patch.setattr(sys, "stdout", out)
    (block,) = blocks("how-to/read-data.md")
    run(block, {})
    assert out.getvalue() == "1 1 2 1 3\n"


@runs("how-to/start-a-cluster.md")
def _init(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Trainer 0 of two; the other one and two pservers run beside it."""
    program, port = line()[0], free_port()
    endpoints = [f"127.0.0.{n}:{port}" for n in (2, 3)]
    (block,) = blocks("how-to/start-a-cluster.md")
    addresses = {"10.0.0.1": "127.0.0.2", "10.0.0.2": "127.0.0.3", "7164": str(port)}

    def declared(trainer: int) -> psrt.DistributeTranspiler:
        transpiler = psrt.DistributeTranspiler()
        transpiler.transpile(program, trainer, endpoints, 2)
        return transpiler

    def other_trainer() -> None:
        with psrt.ConnectedExecutor(declared(1).get_trainer_program()):
            pass

    with ThreadPoolExecutor(3) as pool:
        programs = [declared(0).get_pserver_program(endpoint) for endpoint in endpoints]
        others = [pool.submit(psrt.serve, each) for each in programs] + [pool.submit(other_trainer)]
        names = run(replaced(block, addresses), {"program": program})
        for each in others:
            each.result(timeout=60)
    assert list(names["role"].endpoints) == endpoints


@runs("how-to/use-saved-cuts.md")
def _warm_start(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (block,) = blocks("how-to/use-saved-cuts.md")
    names = run(block, {"program": line()[0]})
    assert names["transpiler"].get_trainer_program().plan.warm_start


@runs("how-to/validate-and-stop-early.md")
def _measures(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (block,) = blocks("how-to/validate-and-stop-early.md")
    names = run(block, {})
    random = np.random.default_rng(1)
    fed = {
        "user": random.integers(0, 5, (90, 1)),
        "weight": random.random((90, 1), np.float32),
        "click": random.integers(0, 2, (90, 1)).astype(np.float32),
        "x": random.normal(size=(90, 2)).astype(np.float32),
    }

    fitted = psrt.fit(names["model"], fed, fed, say=lambda line: None)

    measured = fitted.history[-1].valid.metrics
    assert list(measured) == ["gauc", "weighted_auc", "calibration"]


@runs("reference/checkpoint-format.md")
def _files(folder: Path, patch: pytest.MonkeyPatch) -> None:
    golden = Path(__file__).parents[1] / "golden" / "array_file_1.hex"
    (folder / "cut-00000012").mkdir()
    file = folder / "cut-00000012" / "part.arrays"
    file.write_bytes(bytes.fromhex(golden.read_text()))
    whole, reader = blocks("reference/checkpoint-format.md")
    run(whole.replace("s3://bucket/job", str(folder)), {})
    assert list(run(reader, {})["pages"](file))


@runs("reference/fleet.md")
def _fleet(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "part-0").write_text("3 1 2 3 1 4\n" * 20)
    x, y = (
        fluid.layers.data("x", [3], dtype="float32"),
        fluid.layers.data("y", [1], dtype="float32"),
    )
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var([x, y])
    dataset.set_batch_size(5)
    dataset.set_filelist([str(folder / "part-0")])
    (block,) = blocks("reference/fleet.md")
    with daemon(folder) as pserver:
        variables = {
            "TRAINING_ROLE": "TRAINER",
            "PADDLE_TRAINERS_NUM": "1",
            "PADDLE_TRAINER_ID": "0",
        }
        for name, value in {**variables, "PADDLE_PSERVERS_IP_PORT_LIST": pserver.endpoint}.items():
            patch.setenv(name, value)
        names = run(block, {"loss": loss, "dataset": dataset})
        assert pserver.exit_code() == 0
    assert not names["fleet"].is_server()


@runs("reference/transpiler.md")
def _transpiler(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Two pservers and two trainers, each a thread with names of its own."""
    program, loss = line()
    addresses = {f"10.0.0.{n}:6170": f"127.0.0.1:{free_port()}" for n in (1, 2)}
    declare, serve, train = (
        replaced(text, addresses) for text in blocks("reference/transpiler.md")
    )
    first, second = addresses.values()

    def process(trainer: int, then: str) -> None:
        given = {"program": program, "loss": loss, "trainer_id": trainer, "batches": feeds(3)}
        run(then, run(declare, given))

    bodies = [(0, serve), (0, serve.replace(first, second)), (0, train), (1, train)]
    with ThreadPoolExecutor(len(bodies)) as pool:
        for ended in [pool.submit(process, *body) for body in bodies]:
            ended.result(timeout=60)


def replaced(text: str, words: dict[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(overrides, "OVERRIDES", overrides.ProcessOverrides())
    return tmp_path


@pytest.mark.parametrize("name", sorted(RUNNERS))
def test_the_blocks_of_a_page_run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RUNNERS[name](folder, monkeypatch)
