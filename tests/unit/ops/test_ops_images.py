"""Convolution and pooling: against direct loops, finite differences, and what they refuse."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Scope, layers, optimizer, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.compute.images import tiles
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(21)
IMAGES: Array = RNG.normal(size=(3, 4, 5, 6)).astype(np.float32)

CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {"filter_size": 3},
    "oblong": {"filter_size": (2, 3)},
    "of single pixels": {"filter_size": 1},
    "of the whole image": {"filter_size": (5, 6)},
    "strided": {"filter_size": 2, "stride": (2, 3)},
    "padded": {"filter_size": 3, "padding": (1, 2)},
    "padded on each side": {"filter_size": (2, 3), "stride": 2, "padding": (0, 1, 1, 2)},
    "dilated": {"filter_size": 2, "dilation": (3, 2)},
    "in groups": {"filter_size": 3, "groups": 2},
    "by channel": {"filter_size": 2, "groups": 4},
    "all of it": {
        "filter_size": (3, 2),
        "stride": 2,
        "padding": (2, 1),
        "dilation": (2, 1),
        "groups": 2,
    },
    "rectified": {"filter_size": 3, "act": "relu"},
    "without a bias": {"filter_size": 3, "bias": False},
    "rectified without a bias": {"filter_size": 3, "act": "relu", "bias": False},
    "squashed": {"filter_size": 3, "act": "tanh"},
}
POOLS: dict[str, dict[str, Any]] = {
    "plain": {"pool_size": 2, "pool_stride": 2},
    "overlapping": {"pool_size": (3, 2)},
    "padded": {"pool_size": 3, "pool_stride": 2, "pool_padding": (1, 2)},
    "padded on each side": {"pool_size": 3, "pool_stride": 2, "pool_padding": (0, 1, 1, 2)},
    "rounded up": {"pool_size": 2, "pool_stride": 3, "ceil_mode": True},
    "padded and rounded up": {
        "pool_size": 3,
        "pool_stride": (3, 2),
        "pool_padding": 1,
        "ceil_mode": True,
    },
    "padded on each side and rounded up": {
        "pool_size": 3,
        "pool_stride": 2,
        "pool_padding": (2, 1, 0, 1),
        "ceil_mode": True,
    },
    "of the whole image": {"global_pooling": True},
}


def pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def sides(padding: Any) -> list[tuple[int, int]]:
    """Padding above and below, left and right."""
    if not isinstance(padding, int) and len(padding) == 4:
        return [padding[:2], padding[2:]]
    return [(size, size) for size in pair(padding)]


def convolve(x: Array, weights: Array, bias: Array, asked: dict[str, Any]) -> Array:
    """The definition, pixel by pixel, in double precision."""
    steps = [pair(asked.get(name, 1)) for name in ("stride", "dilation")]
    (down, right), (dilation_y, dilation_x) = steps
    padding = sides(asked.get("padding", 0))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *padding))
    filters, channels, kh, kw = weights.shape
    height = (padded.shape[2] - dilation_y * (kh - 1) - 1) // down + 1
    width = (padded.shape[3] - dilation_x * (kw - 1) - 1) // right + 1
    out = np.empty((len(x), filters, height, width))
    for f, i, j in np.ndindex(filters, height, width):
        first = f // (filters // asked.get("groups", 1)) * channels
        rows = slice(i * down, i * down + dilation_y * (kh - 1) + 1, dilation_y)
        columns = slice(j * right, j * right + dilation_x * (kw - 1) + 1, dilation_x)
        seen = padded[:, first : first + channels, rows, columns]
        out[:, f, i, j] = (seen * weights[f]).sum(axis=(1, 2, 3)) + bias[f]
    act: Callable[[Array], Array] = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}.get(
        asked.get("act", ""), lambda v: v
    )
    return act(out)


def pool(x: Array, pool_type: str, exclusive: bool, asked: dict[str, Any]) -> Array:
    """The definition, window by window; a window counts if it begins inside of the image."""
    size, stride = pair(asked.get("pool_size", 0)), pair(asked.get("pool_stride", 1))
    padding = sides(asked.get("pool_padding", 0))
    if asked.get("global_pooling"):
        size = x.shape[2:]
    starts = [
        [
            start
            for start in range(-padding[n][0], x.shape[2 + n], stride[n])
            if start + size[n] <= x.shape[2 + n] + padding[n][1] or asked.get("ceil_mode")
        ]
        for n in (0, 1)
    ]
    if asked.get("ceil_mode"):  # one window at most goes beyond the padding
        for n in (0, 1):
            over = [s for s in starts[n] if s + size[n] > x.shape[2 + n] + padding[n][1]]
            starts[n] = [s for s in starts[n] if s not in over[1:]]
    out = np.empty((*x.shape[:2], len(starts[0]), len(starts[1])))
    for i, j in np.ndindex(out.shape[2:]):
        top, left = starts[0][i], starts[1][j]
        seen = x[:, :, max(top, 0) : top + size[0], max(left, 0) : left + size[1]]
        count = seen[0, 0].size if exclusive else size[0] * size[1]
        mean = seen.sum(axis=(2, 3)) / count
        out[:, :, i, j] = seen.max(axis=(2, 3)) if pool_type == "max" else mean
    return out


def images(shape: tuple[int, ...] = (4, 5, 6)) -> Var:
    return layers.data("x", shape)


def run(
    build: Callable[[], Var], x: Array = IMAGES, seed: int | None = None
) -> tuple[Array, Scope]:
    """The output of a forward pass with random parameters."""
    rng = RNG if seed is None else np.random.default_rng(seed)
    with program() as p:
        out = build()
    scope = Scope()
    scope.init_parameters(p)
    for name in p.parameters:
        scope[name] = rng.normal(size=scope[name].shape).astype(np.float32)
    (value,) = Executor(p, scope).run({"x": x}, [out], roles=("forward",))
    return np.asarray(value), scope


def bias_of(scope: Scope) -> Array:
    return scope["conv2d_0.b_0"] if "conv2d_0.b_0" in scope else np.zeros(8)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_equals_its_definition(name: str) -> None:
    asked = CONVOLUTIONS[name]

    found, scope = run(lambda: layers.conv2d(images(), 4, **asked))

    expected = convolve(IMAGES, scope["conv2d_0.w_0"], bias_of(scope), asked)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def tiles_of(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Sets limits of `tiles`, such as TILE_ELEMENTS."""
    for name, limit in limits.items():
        monkeypatch.setattr(tiles, name, limit)


@pytest.mark.parametrize("short", [0, 16])
@pytest.mark.parametrize("pixels", [1, 7, 1 << 10])
@pytest.mark.parametrize("elements", [1, 300, 1 << 20])
def test_convolution_is_the_same_in_tiles_of_any_size(
    elements: int, pixels: int, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles_of(monkeypatch, TILE_ELEMENTS=elements, TILE_PIXELS=pixels, SHORT_ROW=short, LANES=2)
    for name in ("all of it", "of single pixels", "rectified"):
        asked = CONVOLUTIONS[name]

        found, scope = run(lambda asked=asked: layers.conv2d(images(), 4, **asked))

        expected = convolve(IMAGES, scope["conv2d_0.w_0"], bias_of(scope), asked)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("name", POOLS)
def test_pooling_equals_its_definition(name: str, pool_type: str, exclusive: bool) -> None:
    asked = POOLS[name]

    found, _ = run(
        lambda: layers.pool2d(images(), pool_type=pool_type, exclusive=exclusive, **asked)
    )

    np.testing.assert_allclose(found, pool(IMAGES, pool_type, exclusive, asked), rtol=1e-5)


SAME = {  # filter, stride → what is added above, below, left, right of 5 × 6 pixels
    "odd": (3, 1, (1, 1, 1, 1)),
    "even": (2, 1, (0, 1, 0, 1)),
    "strided": ((4, 5), 2, (1, 2, 1, 2)),
    "narrower than the stride": (1, (3, 4), (0, 0, 0, 0)),
}


@pytest.mark.parametrize("name", SAME)
def test_padding_keeps_the_size_or_divides_it_by_the_stride(name: str) -> None:
    size, stride, added = SAME[name]

    def maps(padding: Any) -> list[Var]:
        x = images()
        seen = layers.conv2d(x, 1, size, stride, padding, param="w")
        return [seen, layers.pool2d(x, size, "avg", stride, padding)]

    for n in (0, 1):
        same, _ = run(lambda n=n: maps("same")[n], seed=3)
        expected, _ = run(lambda n=n: maps(added)[n], seed=3)
        assert same.shape[2:] == tuple(
            -(-pixels // step) for pixels, step in zip((5, 6), pair(stride), strict=True)
        )
        np.testing.assert_array_equal(same, expected)


def test_no_padding_has_a_name_and_other_names_are_refused() -> None:
    with program():
        x = images()
        assert layers.pool2d(x, 2, pool_padding="VALID").shape == (-1, 4, 4, 5)
        assert layers.conv2d(x, 1, 2, padding="SAME", dilation=3).shape == (-1, 1, 5, 6)
        with pytest.raises(ProgramError, match="argument padding is 'full', not sizes, SAME or V"):
            layers.conv2d(x, 1, 2, padding="full")


def test_batches_may_differ_in_size_and_be_empty() -> None:
    with program() as p:
        maps = layers.simple_img_conv_pool(images(), 2, 2, 2, 2, act="relu")
        loss = layers.reduce_sum(maps)
        optimizer.Sgd(0.1).minimize(loss)
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)

    shapes = [executor.run({"x": IMAGES[:n]}, [maps])[0].shape for n in (3, 1, 0, 2)]

    assert shapes == [(n, 2, 2, 2) for n in (3, 1, 0, 2)]


def trained_images(shape: tuple[int, int, int]) -> Var:
    """A batch of 2 images that depend on a parameter in every pixel."""
    ones = layers.data("ones", (1,))
    flat = layers.fc(ones, int(np.prod(shape)), param="image", bias="shift", act="tanh")
    return layers.reshape(flat, (-1, *shape))


def weighted(x: Var) -> Var:
    """A scalar in which every element of `x` counts differently: errors cannot cancel."""
    return layers.reduce_sum(layers.fc(x, 1, param="last", bias=False))


ONES: Array = np.array([[1.0], [-0.4]])


@pytest.mark.parametrize("name", sorted(CONVOLUTIONS.keys() - {"of the whole image", "dilated"}))
def test_gradient_of_convolution(name: str) -> None:
    asked = CONVOLUTIONS[name]

    def build() -> Var:
        return weighted(layers.conv2d(trained_images((4, 3, 3)), 4, **asked))

    check_gradients(build, {"ones": ONES}, spread=0.6)


def convolve_back(
    x: Array, weights: Array, d: Array, asked: dict[str, Any]
) -> tuple[Array, Array, Array]:
    """The gradients of image, filter and bias for that of the sums, in double precision."""
    (down, right), (dilation_y, dilation_x) = (
        pair(asked.get(name, 1)) for name in ("stride", "dilation")
    )
    (above, below), (before, after) = sides(asked.get("padding", 0))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (above, below), (before, after)))
    padded_grad, weights_grad = np.zeros_like(padded), np.zeros(weights.shape)
    filters, channels, kh, kw = weights.shape
    for f, i, j in np.ndindex(d.shape[1:]):
        first = f // (filters // asked.get("groups", 1)) * channels
        rows = slice(i * down, i * down + dilation_y * (kh - 1) + 1, dilation_y)
        columns = slice(j * right, j * right + dilation_x * (kw - 1) + 1, dilation_x)
        seen = (slice(None), slice(first, first + channels), rows, columns)
        padded_grad[seen] += d[:, f, i, j, None, None, None] * weights[f]
        weights_grad[f] += np.tensordot(d[:, f, i, j], padded[seen], 1)
    height, width = x.shape[2:]
    x_grad = padded_grad[:, :, above : above + height, before : before + width]
    return x_grad, weights_grad, d.sum(axis=(0, 2, 3))


TILES: dict[str, dict[str, int]] = {
    "of one image": {"TILE_PIXELS": 1, "TILE_ELEMENTS": 2000},
    "of one row": {"TILE_PIXELS": 1, "TILE_ELEMENTS": 1},
    "of images": {"TILE_PIXELS": 100, "SHORT_ROW": 0},
    "of interleaved images": {"TILE_PIXELS": 1, "SHORT_ROW": 99, "LANES": 2},
}
GRADIENTS = {
    **{name: CONVOLUTIONS[name] for name in ("of single pixels", "in groups", "all of it")},
    "rectified": {"filter_size": 3, "padding": 1, "act": "relu"},
    "of single pixels, in groups": {"filter_size": 1, "groups": 4},
    "of single pixels, strided": {"filter_size": 1, "stride": 2},
    "of single pixels, padded": {"filter_size": 1, "padding": 1},
    "padded and strided to the same size": {"filter_size": 1, "padding": (2, 9), "stride": 2},
}


@pytest.mark.parametrize("limits", TILES)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_convolution_equal_their_definition_in_tiles_of_any_size(
    name: str, limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles_of(monkeypatch, **TILES[limits])
    asked, x = GRADIENTS[name], RNG.normal(size=(5, 4, 5, 19)).astype(np.float32)
    with program() as p:
        flat = layers.fc(layers.data("one", (5,)), x[0].size, param="image", bias=False)
        maps = layers.conv2d(layers.reshape(flat, (-1, *x.shape[1:])), 8, param="w", **asked)
        d = RNG.normal(size=(5, *maps.shape[1:])).astype(np.float32)
        loss = layers.reduce_sum(layers.elementwise_mul(maps, layers.data("d", d.shape[1:])))
        optimizer.Sgd(0.1).minimize(loss)
    scope = Scope()
    scope.init_parameters(p)
    scope["image"] = x.reshape(5, -1)
    executor = Executor(p, scope)

    (found,) = executor.run({"one": np.eye(5, dtype="f4"), "d": d}, [maps])

    gradients = [executor.gradients()[name] for name in ("image", "w", "conv2d_0.b_0")]
    expected = convolve(x, scope["w"], bias_of(scope), asked)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    passed = d * (expected > 0) if asked.get("act") else d
    for gradient, wanted in zip(
        gradients, convolve_back(x, scope["w"], passed, asked), strict=True
    ):
        np.testing.assert_allclose(np.reshape(gradient, wanted.shape), wanted, rtol=1e-4, atol=1e-4)


def test_gradient_of_dilated_convolution() -> None:
    def build() -> Var:
        return weighted(layers.conv2d(trained_images((1, 5, 4)), 2, 2, dilation=(3, 2)))

    check_gradients(build, {"ones": ONES})


def test_gradient_of_convolution_of_data_alone() -> None:
    def build() -> Var:
        return weighted(layers.conv2d(images((2, 3, 3)), 2, 2, act="relu"))

    check_gradients(build, {"x": IMAGES[:, :2, :3, :3].astype(np.float64)})


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("name", POOLS)
def test_gradient_of_pooling(name: str, pool_type: str, exclusive: bool) -> None:
    asked = POOLS[name]

    def build() -> Var:
        pooled = layers.pool2d(
            trained_images((2, 4, 4)), pool_type=pool_type, exclusive=exclusive, **asked
        )
        return weighted(pooled)

    check_gradients(build, {"ones": ONES})


def test_gradient_reaches_a_part_of_concatenated_maps() -> None:
    def build() -> Var:
        maps = layers.conv2d(trained_images((1, 3, 3)), 2, 2)
        return weighted(layers.concat([layers.pool2d(maps, 1), layers.tanh(maps)]))

    check_gradients(build, {"ones": ONES})


def test_filter_starts_with_the_spread_of_its_fan_in() -> None:
    with program() as p:
        layers.conv2d(images((8, 9, 9)), 64, (3, 5), groups=2)
    scope = Scope()

    scope.init_parameters(p)

    assert scope["conv2d_0.w_0"].shape == (64, 4, 3, 5)
    assert scope["conv2d_0.w_0"].std() == pytest.approx(np.sqrt(2 / (3 * 5 * 8)), rel=0.05)
    assert not scope["conv2d_0.b_0"].any()


def test_a_steady_step_allocates_nothing_large() -> None:
    with program() as p:
        pooled = layers.simple_img_conv_pool(images((4, 40, 40)), 8, 3, 2, 2, act="relu")
        second = layers.simple_img_conv_pool(pooled, 8, 3, 2, 2, pool_type="avg")
        loss = layers.mean(layers.fc(second, 1))
        optimizer.Sgd(0.1).minimize(loss)
    scope = Scope()
    scope.init_parameters(p)
    executor, feed = Executor(p, scope), {"x": RNG.normal(size=(20, 4, 40, 40)).astype("f4")}
    for _ in range(3):
        executor.run(feed)

    tracemalloc.start()
    executor.run(feed)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 100_000 < feed["x"].nbytes


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "convolution of rows": (
        lambda: layers.conv2d(layers.data("x", (9,)), 2, 3),
        r"layers.conv2d \(conv2d_0\).*argument input is x of type float32 \(-1, 9\), which is not "
        r"\(rows, channels, height, width\)",
    ),
    "convolution of ids": (
        lambda: layers.conv2d(layers.data("x", (1, 9, 9), "int64"), 2, 3),
        r"argument input must hold floats, not int64 \(-1, 1, 9, 9\)",
    ),
    "groups that do not divide the channels": (
        lambda: layers.conv2d(images(), 6, 3, groups=3),
        r"argument groups is 3.*num_filters 6 and the channels of argument input of shape "
        r"\(-1, 4, 5, 6\)",
    ),
    "groups that do not divide the filters": (
        lambda: layers.conv2d(images(), 3, 3, groups=2),
        "argument groups is 2.*num_filters 3",
    ),
    "a filter larger than the image": (
        lambda: layers.conv2d(images(), 2, (3, 9), padding=1),
        r"argument filter of shape \(2, 4, 3, 9\).*is larger than argument input of shape "
        r"\(-1, 4, 5, 6\) with padding \(1, 1\)",
    ),
    "a filter of three sizes": (
        lambda: layers.conv2d(images(), 2, (3, 3, 3)),
        r"argument filter_size is \(3, 3, 3\), not one or two sizes from 1 on",
    ),
    "no stride": (lambda: layers.conv2d(images(), 2, 3, stride=0), "argument stride is 0"),
    "an unknown activation": (
        lambda: layers.conv2d(images(), 2, 3, act="gelu?"),
        r"argument act is 'gelu\?'",
    ),
    "pooling of rows": (
        lambda: layers.pool2d(layers.data("x", (9,)), 3),
        r"layers.pool2d \(pool2d_0\).*argument input is x of type float32 \(-1, 9\)",
    ),
    "an unknown pool": (
        lambda: layers.pool2d(images(), 2, "median"),
        "argument pool_type is 'median', psrt has max and avg",
    ),
    "a pool without a size": (lambda: layers.pool2d(images()), "argument pool_size is -1"),
    "a pool larger than the image": (
        lambda: layers.pool2d(images(), 7),
        r"argument pool_size \(7, 7\) does not fit argument input of shape \(-1, 4, 5, 6\)",
    ),
    "windows of padding alone": (
        lambda: layers.pool2d(images(), 2, pool_padding=2),
        r"argument pool_size \(2, 2\).*with padding \(2, 2\), which must be smaller",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
