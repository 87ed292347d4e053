"""Files of PaddlePaddle 2.6.2, made and read by PaddlePaddle itself. It is not installed for tests:

    python3.11 -m venv ref && ref/bin/pip install paddlepaddle==2.6.2 setuptools
    ref/bin/python tests/golden/paddle_model.py make tests/golden/paddle
    ref/bin/python tests/golden/paddle_model.py read DIRECTORY

`make` trains a network for three steps, and writes its model, its values, and what it predicts for
`batch()`. `read` predicts with a model that psrt wrote (`psrt.fluid.io.save_inference_model(
DIRECTORY, …, model_filename="model.pdmodel", params_filename="model.pdiparams")`), and compares
with `predictions.json` there.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

IDS, DENSE, IMAGE, LABEL = "ids", "dense", "image", "label"


def batch() -> dict[str, Any]:
    """Return the batch that predictions are for."""
    rng = np.random.default_rng(3)
    return {
        IDS: rng.integers(0, 11, (6, 3)),
        DENSE: rng.normal(size=(6, 4)).astype("f4"),
        IMAGE: rng.normal(size=(6, 1, 6, 6)).astype("f4"),
    }


def network(paddle: Any) -> tuple[list[Any], list[Any], Any]:
    """Return feeds, predictions and the loss."""
    nn, ops = paddle.static.nn, paddle.nn.functional
    ids = paddle.static.data(IDS, [None, 3], "int64")
    dense = paddle.static.data(DENSE, [None, 4], "float32")
    image = paddle.static.data(IMAGE, [None, 1, 6, 6], "float32")
    label = paddle.static.data(LABEL, [None, 1], "int64")
    rows = paddle.reshape(nn.embedding(ids, [11, 3]), [-1, 9])
    hidden = nn.fc(paddle.concat([rows, dense], axis=1), 5, activation="relu")
    classes = nn.fc(ops.dropout(hidden, 0.3), 2, activation="softmax")
    seen = nn.batch_norm(nn.conv2d(image, 2, 3, act="relu"))
    score = ops.sigmoid(nn.fc(ops.max_pool2d(seen, 2, 2), 1))
    loss = paddle.mean(ops.cross_entropy(classes, label, use_softmax=False)) + paddle.mean(score)
    return [ids, dense, image], [classes, score], loss


def make(paddle: Any, directory: Path) -> None:
    """Write `model.pdmodel.gz`, `model.pdiparams`, `state.pdparams` and `predictions.json`."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    main.random_seed = startup.random_seed = 7
    with paddle.static.program_guard(main, startup):
        feeds, fetches, loss = network(paddle)
        test = main.clone(for_test=True)
        paddle.optimizer.SGD(0.5).minimize(loss)
    exe = paddle.static.Executor()
    exe.run(startup)
    for _ in range(3):
        exe.run(main, feed=batch() | {LABEL: np.array([[0], [1]] * 3)}, fetch_list=[loss])
    found = exe.run(test, feed=batch() | {LABEL: np.zeros((6, 1), int)}, fetch_list=fetches)
    paddle.static.save_inference_model(str(directory / "model"), feeds, fetches, exe, program=main)
    paddle.static.save(main, str(directory / "state"))
    model = directory / "model.pdmodel"
    (directory / "model.pdmodel.gz").write_bytes(gzip.compress(model.read_bytes(), mtime=0))
    for path in (model, directory / "state.pdmodel", directory / "state.pdopt"):
        path.unlink()
    (directory / "predictions.json").write_text(json.dumps([part.tolist() for part in found]))


def read(paddle: Any, directory: Path) -> None:
    """Print the largest difference between PaddlePaddle's predictions and those in a file."""
    exe = paddle.static.Executor()
    program, _, fetches = paddle.static.load_inference_model(str(directory / "model"), exe)
    found = exe.run(program, feed=batch(), fetch_list=fetches)
    expected = json.loads((directory / "predictions.json").read_text())
    print(max(float(np.abs(a - np.array(b)).max()) for a, b in zip(found, expected, strict=True)))


if __name__ == "__main__":
    import paddle  # type: ignore[import-not-found]

    paddle.enable_static()
    {"make": make, "read": read}[sys.argv[1]](paddle, Path(sys.argv[2]))
