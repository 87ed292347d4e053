"""Exported models compute in onnxruntime what they compute here; the rest is refused by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import psrt
from psrt import layers
from psrt.cli import main
from psrt.core.errors import ConfigError, ProgramError
from psrt.graph.ops.sequence import POOLS
from psrt.graph.program import Var
from psrt.trainer.models.inference import Predictor, load_inference_model, save_inference_model
from psrt.trainer.models.onnx_export import export_onnx
from psrt.trainer.models.onnx_nodes import EXPORTS
from tests.support.click_model import batch, train

Build = Callable[[], Var]
ROWS = 5


def x(*shape: int, name: str = "x") -> Var:
    return layers.data(name, shape=shape)


def ids(count: int, name: str = "ids") -> Var:
    return layers.data(name, shape=(count,), dtype="int64")


def parameter(*shape: int) -> Var:
    return layers.create_parameter(shape)


def counts(name: str = "ids") -> Var:
    return ids(1, name)


def positive() -> Var:
    return layers.exp(x(3))


def padded_pool(pool: str, **options: Any) -> Var:
    return layers.pool2d(x(2, 7, 8), (3, 2), pool, 2, (1, 0), **options)


ARITHMETIC: dict[str, Build] = {
    "add": lambda: layers.elementwise_add(x(3), x(3, name="y")),
    "add at an axis": lambda: layers.elementwise_add(x(3, 4), parameter(3), axis=1),
    "add ids": lambda: layers.elementwise_add(ids(3), ids(3, "b")),
    "subtract": lambda: layers.elementwise_sub(x(3, 4), parameter(4)),
    "multiply": lambda: layers.elementwise_mul(x(3), x(3, name="y")),
    "divide": lambda: layers.elementwise_div(x(3), parameter(3)),
    "larger": lambda: layers.elementwise_max(x(3), x(3, name="y")),
    "smaller": lambda: layers.elementwise_min(x(3), x(3, name="y")),
    "to the power": lambda: layers.elementwise_pow(positive(), x(3, name="y")),
    "sums": lambda: layers.sums([x(3), x(3, name="y"), x(3, name="z")]),
}
FUNCTIONS: dict[str, Build] = {
    "relu": lambda: layers.relu(x(3)),
    "relu6": lambda: layers.relu6(x(3), threshold=1.5),
    "leaky relu": lambda: layers.leaky_relu(x(3), alpha=0.1),
    "elu": lambda: layers.elu(x(3), alpha=0.7),
    "sigmoid": lambda: layers.sigmoid(x(3)),
    "logsigmoid": lambda: layers.logsigmoid(x(3)),
    "hard sigmoid": lambda: layers.hard_sigmoid(x(3), slope=0.3, offset=0.4),
    "tanh": lambda: layers.tanh(x(3)),
    "gelu": lambda: layers.gelu(x(3)),
    "gelu by tanh": lambda: layers.gelu(x(3), approximate=True),
    "softplus": lambda: layers.softplus(x(3)),
    "softsign": lambda: layers.softsign(x(3)),
    "swish": lambda: layers.swish(x(3), beta=1.5),
    "softmax": lambda: layers.softmax(x(3, 4)),
    "softmax further out": lambda: layers.softmax(x(3, 4), axis=1),
    "log softmax": lambda: layers.log_softmax(x(3, 4)),
    "exp": lambda: layers.exp(x(3)),
    "log": lambda: layers.log(positive()),
    "sqrt": lambda: layers.sqrt(positive()),
    "rsqrt": lambda: layers.rsqrt(positive()),
    "square": lambda: layers.square(x(3)),
    "abs": lambda: layers.abs(x(3)),
    "reciprocal": lambda: layers.reciprocal(x(3)),
    "sin": lambda: layers.sin(x(3)),
    "cos": lambda: layers.cos(x(3)),
    "sign": lambda: layers.sign(x(3)),
    "floor": lambda: layers.floor(x(3)),
    "ceil": lambda: layers.ceil(x(3)),
    "round": lambda: layers.round(x(30)),
    "pow": lambda: layers.pow(positive(), 2.5),
    "clip": lambda: layers.clip(x(3), -0.5, 1.0),
    "clip ids": lambda: layers.clip(ids(3), 2, 5),
    "scale": lambda: layers.scale(x(3), 2.0, 0.5),
    "scale ids": lambda: layers.scale(ids(3), 2.0, 1.0),
}
SHAPES: dict[str, Build] = {
    "concat": lambda: layers.concat([x(3), x(2, name="y")], axis=1),
    "concat further in": lambda: layers.concat([x(2, 3), x(2, 4, name="y")], axis=2),
    "stack": lambda: layers.stack([x(3), x(3, name="y")], axis=2),
    "split": lambda: layers.split(x(6), 3)[1],
    "slice": lambda: layers.slice(x(4, 6), axes=[1, 2], starts=[1, 0], ends=[3, 5]),
    "reshape": lambda: layers.reshape(x(6), (-1, 2, 3)),
    "flatten": lambda: layers.flatten(x(2, 3)),
    "squeeze": lambda: layers.squeeze(x(1, 3), axes=[1]),
    "unsqueeze": lambda: layers.unsqueeze(x(3), axes=[1]),
    "transpose": lambda: layers.transpose(x(2, 3, 4), perm=[0, 3, 1, 2]),
    "expand": lambda: layers.expand(x(2, 3), expand_times=[1, 3, 2]),
    "cast to integers": lambda: layers.cast(x(3), "int64"),
    "cast to floats": lambda: layers.cast(ids(3), "float32"),
    "assign": lambda: layers.assign(x(3)),
    "zeros": lambda: layers.zeros_like(x(3)),
    "ones": lambda: layers.ones_like(x(3)),
    "constant": lambda: layers.elementwise_add(x(3), layers.fill_constant([3], "float32", 2.5)),
    "constant rows": lambda: layers.fill_constant_batch_size_like(x(3), [-1, 2], "float32", 2.5),
    "one hot": lambda: layers.one_hot(counts(), 12),
    "one hot of several": lambda: layers.one_hot(ids(2), 12),
    "gather": lambda: layers.gather(parameter(12, 3), counts()),
    "gather by positions": lambda: layers.gather_nd(parameter(12, 3), counts()),
    "given numbers": lambda: layers.elementwise_add(x(3), layers.constant([1, -2, 3], [3])),
    "mask": lambda: layers.sequence_mask(counts(), maxlen=6),
}
REDUCTIONS: dict[str, Build] = {
    "mean": lambda: layers.mean(x(3)),
    "sum over all": lambda: layers.reduce_sum(x(3)),
    "sum over one": lambda: layers.reduce_sum(x(3, 4), dim=1),
    "sum that keeps": lambda: layers.reduce_sum(x(3, 4), dim=[1, 2], keep_dim=True),
    "mean over one": lambda: layers.reduce_mean(x(3, 4), dim=2),
    "maximum": lambda: layers.reduce_max(x(3, 4), dim=1),
    "minimum": lambda: layers.reduce_min(x(3, 4), dim=1, keep_dim=True),
    "product": lambda: layers.reduce_prod(x(3, 4), dim=[1, 2]),
    "running sum": lambda: layers.cumsum(x(3, 4), axis=1),
    "running sum from the end": lambda: layers.cumsum(x(4), exclusive=True, reverse=True),
    "argmax": lambda: layers.argmax(x(6)),
    "argmin": lambda: layers.argmin(x(3, 4), axis=1),
    "top k": lambda: layers.topk(x(6), k=2)[0],
    "places of the top k": lambda: layers.topk(x(6), k=2)[1],
    "normalised": lambda: layers.l2_normalize(x(3, 4), axis=1),
    "cosine": lambda: layers.cos_sim(x(3), x(3, name="y")),
    "cosine of zero": lambda: layers.cos_sim(layers.zeros_like(x(3)), x(3, name="y")),
    "pairs of fields": lambda: layers.fm_interaction(x(4, 3)),
    "pairs by column": lambda: layers.fm_interaction(x(4, 3), by_column=True),
}
PRODUCTS: dict[str, Build] = {
    "fc": lambda: layers.fc(x(3), 4),
    "fc relu": lambda: layers.fc(x(3), 4, act="relu"),
    "fc without bias": lambda: layers.fc(x(3), 4, bias=False),
    "fc of two": lambda: layers.fc([x(3), x(2, name="y")], 4, act="tanh"),
    "fc of an image": lambda: layers.fc(x(2, 3, 3), 4),
    "matrix product": lambda: layers.matmul(x(3), parameter(3, 4)),
    "matrix products": lambda: layers.matmul(x(2, 3), x(4, 3, name="y"), transpose_y=True),
    "product turned": lambda: layers.matmul(x(3, 2), x(3, 4, name="y"), True, alpha=0.5),
    "all against all": lambda: layers.matmul(x(3), x(3, name="y"), transpose_y=True),
    "dot": lambda: layers.dot(x(3), x(3, name="y")),
    "convolution": lambda: layers.conv2d(x(2, 6, 7), 3, (3, 2), stride=2, padding=(1, 0)),
    "convolution padded behind": lambda: layers.conv2d(x(2, 6, 7), 3, 2, padding="SAME"),
    "convolution relu": lambda: layers.conv2d(x(2, 6, 7), 3, 3, dilation=2, act="relu"),
    "convolution in groups": lambda: layers.conv2d(x(4, 6, 6), 2, 3, groups=2, bias=False),
    "maximum of windows": lambda: padded_pool("max"),
    "maximum padded behind": lambda: layers.pool2d(x(2, 7, 8), 2, "max", 1, "SAME"),
    "maximum beyond the edge": lambda: padded_pool("max", ceil_mode=True),
    "average of windows": lambda: padded_pool("avg"),
    "average beyond the edge": lambda: padded_pool("avg", ceil_mode=True),
    "average with padding": lambda: padded_pool("avg", exclusive=False),
    "average with padding beyond": lambda: padded_pool("avg", ceil_mode=True, exclusive=False),
    "average of images": lambda: layers.pool2d(x(2, 5, 6), pool_type="avg", global_pooling=True),
    "batch norm": lambda: layers.batch_norm(x(3)),
    "batch norm of images": lambda: layers.batch_norm(x(3, 4, 5), act="relu"),
    "layer norm": lambda: layers.layer_norm(x(6)),
    "layer norm of images": lambda: layers.layer_norm(x(3, 4), begin_norm_axis=1),
    "layer norm alone": lambda: layers.layer_norm(
        x(3, 4), scale=False, shift=False, begin_norm_axis=2
    ),
    "dropout": lambda: layers.dropout(x(3), 0.3),
    "dropout scaled in training": lambda: layers.dropout(
        x(3), 0.3, dropout_implementation="upscale_in_train"
    ),
}
LOOKUPS: dict[str, Build] = {
    "embedding": lambda: layers.embedding(ids(2), (50, 4)),
    "embedding with padding": lambda: layers.embedding(ids(2), (50, 4), padding_idx=7),
    "sparse embedding": lambda: layers.embedding(ids(2), (50, 4), is_sparse=True),
    "weighted embedding": lambda: layers.weighted_embedding(ids(3), x(3), (50, 4)),
    "slots": lambda: layers.slot_embeddings([ids(1), ids(2, "b")], (50, 4), is_distributed=False),
    **{
        f"{pool} of slots": partial(
            lambda pool: layers.slot_embeddings(
                [ids(3), ids(2, "b")], (50, 4), pool, is_distributed=False, padding_idx=7
            ),
            pool,
        )
        for pool in POOLS
    },
}
CASES = ARITHMETIC | FUNCTIONS | SHAPES | REDUCTIONS | PRODUCTS | LOOKUPS


def predictor_of(build: Build, directory: Path) -> Predictor:
    """Saved and loaded with parameters that are all different from zero."""
    with psrt.program() as program:
        out = build()
    scope = psrt.Scope()
    scope.init_parameters(program)
    random = np.random.default_rng(3)
    for name, record in program.parameters.items():
        scope[name] = random.uniform(0.5, 1.5, record.shape).astype(np.float32)
    feeds = [var.name for var in program.data_vars()]
    save_inference_model(directory, feeds, [out], program, scope)
    return load_inference_model(directory)


def feed_of(predictor: Predictor) -> dict[str, np.ndarray]:
    random = np.random.default_rng(4)
    feed: dict[str, np.ndarray] = {}
    for var in predictor.program.data_vars():
        shape = (ROWS, *var.shape[1:])
        if var.dtype == "int64":
            feed[var.name] = random.integers(0, 10, shape)
        else:
            feed[var.name] = random.uniform(-2, 2, shape).astype(np.float32)
    return feed


def run_onnx(path: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0])


@pytest.mark.parametrize("case", CASES)
def test_onnxruntime_computes_the_same(case: str, tmp_path: Path) -> None:
    predictor = predictor_of(CASES[case], tmp_path / "model")
    feed = feed_of(predictor)

    export_onnx(predictor, tmp_path / "model.onnx")

    expected = np.asarray(predictor.run(feed)[0])
    found = run_onnx(tmp_path / "model.onnx", feed)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_every_exporter_has_a_case(tmp_path: Path) -> None:
    drawn = {
        op.type
        for number, build in enumerate(CASES.values())
        for op in predictor_of(build, tmp_path / str(number)).program.ops
    }

    assert EXPORTS.keys() - drawn == set()


def test_a_trained_model_keeps_the_names_of_its_feeds_and_fetches(tmp_path: Path) -> None:
    trained = train()
    save_inference_model(
        tmp_path / "m", ["x", "ids"], [trained.prediction], trained.program, trained.scope
    )

    code = main.run(["export", str(tmp_path / "m"), str(tmp_path / "m.onnx")])

    assert code == 0
    graph = onnx.load(str(tmp_path / "m.onnx")).graph
    assert [each.name for each in graph.input] == ["x", "ids"]
    assert [each.name for each in graph.output] == [trained.prediction]
    for rows in (1, 20):
        feed = batch(rows, seed=rows)
        np.testing.assert_allclose(
            run_onnx(tmp_path / "m.onnx", feed), trained.predict(feed), rtol=1e-5, atol=1e-6
        )


# --- refusals -------------------------------------------------------------------------------------


def ragged() -> Var:
    return layers.data("words", shape=(1,), dtype="int64", ragged=True)


def assert_refused(build: Build, directory: Path, match: str) -> None:
    with psrt.program() as program:
        out = build()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feeds = [var.name for var in program.data_vars()]
    tables = {p.name: list for p in program.parameters.values() if p.distributed}
    save_inference_model(directory / "m", feeds, [out], program, scope, tables=tables)

    with pytest.raises(ProgramError, match=match):
        export_onnx(load_inference_model(directory / "m"), directory / "m.onnx")

    assert [path.name for path in directory.iterdir()] == ["m"]


def test_a_ragged_input_is_refused_by_name(tmp_path: Path) -> None:
    assert_refused(
        lambda: layers.sequence_pool(layers.embedding(ragged(), (50, 4))),
        tmp_path,
        "The var words is ragged",
    )


@pytest.mark.parametrize(
    "initializer",
    [
        psrt.initializer.Uniform(-0.5, 0.25),
        psrt.initializer.Normal(0.5, 2.0),
        psrt.initializer.TruncatedNormal(0.0, 0.1),
        psrt.initializer.Constant(0.75),
    ],
    ids=lambda initializer: type(initializer).__name__,
)
def test_a_distributed_table_has_the_rows_of_any_id(tmp_path: Path, initializer: Any) -> None:
    """Trained ids from their rows, all others from the formula of their initial values."""
    table = psrt.Param("clicks", initializer=initializer)
    with psrt.program(seed=-5) as program:
        out = layers.slot_embeddings([ids(200)], (50, 3), "max", param=table, padding_idx=7)
    trained = np.array([-(2**63), -1, 0, 9, 2**62]), np.arange(15, dtype=np.float32).reshape(5, 3)
    pages = {"clicks": lambda: iter([trained])}
    save_inference_model(tmp_path / "m", ["ids"], [out], program, psrt.Scope(), tables=pages)
    predictor = load_inference_model(tmp_path / "m")
    random = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (40, 200))
    random[:6, 0] = [*trained[0], 7]
    feed = {"ids": np.repeat(random[:, :1], 200, axis=1)}, {"ids": random}

    export_onnx(predictor, tmp_path / "m.onnx")

    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for each in feed:
        (expected,), (found,) = predictor.run(each), session.run(None, each)
        assert np.abs(expected - found).max() < 1e-6
    assert {
        (each.domain, each.version) for each in onnx.load(tmp_path / "m.onnx").opset_import
    } == {("", 18), ("ai.onnx.ml", 2)}


def test_an_op_without_onnx_form_is_refused_with_layer_and_line(tmp_path: Path) -> None:
    assert_refused(
        lambda: layers.square_error_cost(x(1), x(1, name="y")),
        tmp_path,
        r"op square_error_cost of layer square_error_cost_0 \(test_onnx_export\.py:\d+\) cannot be",
    )


def test_without_the_onnx_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = predictor_of(CASES["relu"], tmp_path / "m")
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(ConfigError, match="the package onnx cannot be imported") as caught:
        export_onnx(predictor, tmp_path / "m.onnx")

    assert "psrt-cluster[onnx]" in caught.value.hint


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("m/manifest.json", "manifest.json would be overwritten, but is read"),
        ("taken.onnx", "taken.onnx.tmp cannot be written (Is a directory)"),
        ("/proc/m.onnx", "/proc/m.onnx.tmp cannot be written (No such file or directory)"),
    ],
)
def test_an_out_that_cannot_be_written_or_is_read_is_refused(
    tmp_path: Path, out: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    predictor_of(CASES["relu"], tmp_path / "m")
    (tmp_path / "taken.onnx.tmp").mkdir()

    code = main.run(["export", str(tmp_path / "m"), str(tmp_path / out)])

    assert code == 2
    assert says in capsys.readouterr().err


def test_parameters_beyond_what_a_file_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psrt.trainer.models import onnx_export

    monkeypatch.setattr(onnx_export, "LARGEST_FILE_BYTES", 100)
    predictor = predictor_of(CASES["embedding"], tmp_path / "m")

    with pytest.raises(ProgramError, match=r"800 bytes, embedding_0\.w_0 most of them"):
        export_onnx(predictor, tmp_path / "m.onnx")
