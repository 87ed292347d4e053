"""Four models, each written with psrt's layers and in plain torch.

A model has three parts. `build` writes the psrt program and returns its loss. `module` returns a
torch module whose `forward(feed)` returns an equal loss. `feeds` returns batches for both. A psrt
parameter has the name of its twin in the `state_dict` of the module; `torch_sides` copies initial
values by name.

`is_sparse` of `module` selects sparse gradients of tables; psrt's tables are always sparse.
`sgd_rate` is a learning rate for the scale of the model's gradients. Sizes are arguments, so that
tests can use small ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import psrt
from psrt import layers
from psrt.graph.program import Var

Feed: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, Tensor]

CLASSES, SIDE = 10, 28


class Model(Protocol):
    """One model of both libraries."""

    sgd_rate: float

    def build(self) -> Var: ...

    def module(self, is_sparse: bool) -> nn.Module: ...

    def feeds(self, count: int) -> list[Feed]: ...


def fully_connected(x: Var, size: int, name: str, act: str | None = None) -> Var:
    """`layers.fc` with the parameter names of an `nn.Linear` called `name`."""
    return layers.fc(x, size, act, param=f"{name}.weight", bias=f"{name}.bias")


# --- digits: a multilayer perceptron, a convolutional net -----------------------------------------


def digits(count: int, batch: int, side: int = SIDE) -> list[Feed]:
    """Images like MNIST's with planted labels; four pixels in five are 0."""
    rng = np.random.default_rng(17)
    planted = rng.normal(size=(side * side, CLASSES)).astype(np.float32)
    feeds = []
    for _ in range(count):
        ink = rng.random((batch, side * side), dtype=np.float32)
        pixel = np.where(rng.random(ink.shape) < 0.2, ink, np.float32(0))
        feeds.append({"pixel": pixel, "label": np.argmax(pixel @ planted, axis=1)[:, None]})
    return feeds


@dataclass(frozen=True)
class Mlp:
    """784 – 200 – 200 – 10 with ReLU, softmax cross-entropy."""

    hidden: tuple[int, ...] = (200, 200)
    batch: int = 64
    sgd_rate: float = 0.1

    def build(self) -> Var:
        layer = layers.data("pixel", shape=(SIDE * SIDE,))
        label = layers.data("label", shape=(1,), dtype="int64")
        for i, width in enumerate(self.hidden):
            layer = fully_connected(layer, width, f"hidden.{i}", act="relu")
        logits = fully_connected(layer, CLASSES, "out")
        return layers.mean(layers.softmax_with_cross_entropy(logits, label))

    def module(self, is_sparse: bool) -> nn.Module:
        return TorchMlp(self.hidden)

    def feeds(self, count: int) -> list[Feed]:
        return digits(count, self.batch)


class TorchMlp(nn.Module):
    def __init__(self, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.hidden, last = linear_stack(SIDE * SIDE, hidden)
        self.out = nn.Linear(last, CLASSES)

    def forward(self, feed: Tensors) -> Tensor:
        layer = feed["pixel"]
        for linear in self.hidden:
            layer = torch.relu(linear(layer))
        return functional.cross_entropy(self.out(layer), feed["label"][:, 0])


def linear_stack(width: int, hidden: tuple[int, ...]) -> tuple[nn.ModuleList, int]:
    """Linear layers of the widths `hidden` over an input of `width`, and the last width."""
    widths = (width, *hidden)
    pairs = zip(widths, hidden, strict=False)
    return nn.ModuleList(nn.Linear(before, after) for before, after in pairs), widths[-1]


@dataclass(frozen=True)
class ConvNet:
    """Two convolutions of 5 × 5, each with ReLU and max pooling of 2 × 2; softmax cross-entropy."""

    filters: tuple[int, ...] = (20, 50)
    side: int = SIDE
    batch: int = 64
    sgd_rate: float = 0.01

    def build(self) -> Var:
        pixel = layers.data("pixel", shape=(self.side * self.side,))
        label = layers.data("label", shape=(1,), dtype="int64")
        layer = layers.reshape(pixel, (-1, 1, self.side, self.side))
        for i, count in enumerate(self.filters):
            named = {"param": f"conv.{i}.weight", "bias": f"conv.{i}.bias"}
            layer = layers.simple_img_conv_pool(layer, count, 5, 2, 2, act="relu", **named)
        logits = fully_connected(layers.flatten(layer), CLASSES, "out")
        return layers.mean(layers.softmax_with_cross_entropy(logits, label))

    def module(self, is_sparse: bool) -> nn.Module:
        return TorchConvNet(self.filters, self.side)

    def feeds(self, count: int) -> list[Feed]:
        return digits(count, self.batch, self.side)


class TorchConvNet(nn.Module):
    def __init__(self, filters: tuple[int, ...], side: int) -> None:
        super().__init__()
        self.shape, channels = (-1, 1, side, side), (1, *filters)
        for _ in filters:
            side = (side - 4) // 2
        pairs = zip(channels, filters, strict=False)
        self.conv = nn.ModuleList(nn.Conv2d(before, after, 5) for before, after in pairs)
        self.out = nn.Linear(channels[-1] * side * side, CLASSES)

    def forward(self, feed: Tensors) -> Tensor:
        layer = feed["pixel"].reshape(self.shape)
        for conv in self.conv:
            layer = functional.max_pool2d(torch.relu(conv(layer)), 2)
        return functional.cross_entropy(self.out(layer.flatten(1)), feed["label"][:, 0])


# --- DeepFM ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeepFm:
    """Guo et al. 2017: first-order weights, products of pairs of slots, and a deep network."""

    slots: int = 10
    numbers: int = 13
    rows: int = 20_000
    factors: int = 8
    hidden: tuple[int, ...] = (128, 64)
    batch: int = 512
    sgd_rate: float = 0.1

    def build(self) -> Var:
        click, numbers = layers.data("click"), layers.data("numbers", shape=(self.numbers,))
        ids = [layers.data(f"C{i}", dtype="int64") for i in range(self.slots)]
        local: dict[str, Any] = {"is_distributed": False}
        ones = layers.slot_embeddings(ids, (self.rows, 1), param="ones.weight", **local)
        vectors = layers.slot_embeddings(
            ids, (self.rows, self.factors), param="vectors.weight", **local
        )
        layer = layers.concat([vectors, numbers])
        for i, width in enumerate(self.hidden):
            layer = fully_connected(layer, width, f"hidden.{i}", act="relu")
        first = layers.reduce_sum(ones, dim=1, keep_dim=True)
        second = layers.fm_interaction(vectors, width=self.factors)
        wide, deep = (fully_connected(x, 1, n) for x, n in ((numbers, "wide"), (layer, "deep")))
        logit = layers.sums([first, second, wide, deep])
        return layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))

    def module(self, is_sparse: bool) -> nn.Module:
        return TorchDeepFm(self, is_sparse)

    def feeds(self, count: int) -> list[Feed]:
        rng = np.random.default_rng(19)
        planted = rng.normal(0.0, 0.5, self.rows)
        feeds = []
        for _ in range(count):
            ids = zipf_ids(rng, self.rows, (self.batch, self.slots))
            numbers = rng.standard_normal((self.batch, self.numbers), dtype=np.float32)
            logit = planted[ids].sum(axis=1) + numbers[:, 0]
            click = rng.random(self.batch) < 1 / (1 + np.exp(-logit))
            slots = {f"C{i}": np.ascontiguousarray(ids[:, i : i + 1]) for i in range(self.slots)}
            feeds.append({"click": click[:, None].astype(np.float32), "numbers": numbers, **slots})
        return feeds


class TorchDeepFm(nn.Module):
    def __init__(self, sizes: DeepFm, is_sparse: bool) -> None:
        super().__init__()
        self.slots = [f"C{i}" for i in range(sizes.slots)]
        self.ones = nn.Embedding(sizes.rows, 1, sparse=is_sparse)
        self.vectors = nn.Embedding(sizes.rows, sizes.factors, sparse=is_sparse)
        self.hidden, last = linear_stack(sizes.slots * sizes.factors + sizes.numbers, sizes.hidden)
        self.wide, self.deep = nn.Linear(sizes.numbers, 1), nn.Linear(last, 1)

    def forward(self, feed: Tensors) -> Tensor:
        ids = torch.cat([feed[slot] for slot in self.slots], dim=1)
        vectors = self.vectors(ids)
        layer = torch.cat([vectors.flatten(1), feed["numbers"]], dim=1)
        for linear in self.hidden:
            layer = torch.relu(linear(layer))
        pairs = vectors.sum(dim=1).square() - vectors.square().sum(dim=1)
        second = 0.5 * pairs.sum(dim=1, keepdim=True)
        first = self.ones(ids).sum(dim=1)
        logit = first + second + self.wide(feed["numbers"]) + self.deep(layer)
        return functional.binary_cross_entropy_with_logits(logit, feed["click"])


def zipf_ids(rng: np.random.Generator, rows: int, shape: tuple[int, ...]) -> np.ndarray:
    """Ids below `rows` (int64), the rank-th most frequent with probability ∝ 1 / rank."""
    cdf = np.cumsum(1.0 / np.arange(1, rows + 1))
    return np.searchsorted(cdf / cdf[-1], rng.random(shape))


# --- word2vec -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Word2Vec:
    """Skip-gram with negative sampling (Mikolov et al. 2013); torch takes psrt's samples."""

    vocabulary: int = 20_000
    width: int = 64
    negatives: int = 5
    batch: int = 512
    sgd_rate: float = 1.0

    DRAWN = "negative_sampling_loss_0.out"
    """The var with each target and its negatives; `torch_sides` adds it to the feeds."""

    def build(self) -> Var:
        center, target = (layers.data(name, dtype="int64") for name in ("center", "target"))
        size = (self.vocabulary, self.width)
        small = psrt.initializer.Uniform(-0.5 / self.width, 0.5 / self.width)
        centers = psrt.Param("centers.weight", small)
        rows = layers.embedding(center, size, is_sparse=True, param=centers)
        cost = layers.negative_sampling_loss(
            layers.flatten(rows),
            target,
            self.vocabulary,
            num_neg_samples=self.negatives,
            param="targets.weight",
            is_sparse=True,
        )
        return layers.mean(cost)

    def module(self, is_sparse: bool) -> nn.Module:
        return TorchWord2Vec(self, is_sparse)

    def feeds(self, count: int) -> list[Feed]:
        rng = np.random.default_rng(23)
        shape = (self.batch, 1)
        names = ("center", "target")
        return [
            {name: zipf_ids(rng, self.vocabulary, shape) for name in names} for _ in range(count)
        ]


class TorchWord2Vec(nn.Module):
    def __init__(self, sizes: Word2Vec, is_sparse: bool) -> None:
        super().__init__()
        self.centers = nn.Embedding(sizes.vocabulary, sizes.width, sparse=is_sparse)
        self.targets = nn.Embedding(sizes.vocabulary, sizes.width, sparse=is_sparse)

    def forward(self, feed: Tensors) -> Tensor:
        centers, targets = self.centers(feed["center"]), self.targets(feed[Word2Vec.DRAWN])
        scores = (targets * centers).sum(dim=2)  # a step with `torch.bmm` takes 1.5 times as long
        negatives = functional.logsigmoid(-scores[:, 1:]).sum(dim=1)
        return -(functional.logsigmoid(scores[:, 0]) + negatives).mean()


MODELS: dict[str, type[Model]] = {
    "mlp": Mlp,
    "deepfm": DeepFm,
    "word2vec": Word2Vec,
    "conv": ConvNet,
}
