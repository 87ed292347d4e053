"""Models written twice, for Fluid and for psrt, with batches for a few steps."""

from __future__ import annotations

from typing import Any

import numpy as np

import psrt
import psrt.fluid as fluid
from psrt import layers
from psrt.core.tensors import Ragged

STEPS, ROWS, WORDS, DICT = 5, 6, 4, 50

Feeds = list[dict[str, Any]]


def numbers(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- fit a line: linear regression by SGD ---


def fluid_line() -> fluid.Variable:
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    predicted = fluid.layers.fc(input=x, size=1, act=None)
    cost = fluid.layers.square_error_cost(input=predicted, label=y)
    avg_cost = fluid.layers.mean(cost)
    fluid.optimizer.SGD(learning_rate=0.01).minimize(avg_cost)
    return avg_cost


def psrt_line() -> None:
    x, y = layers.data("x", (13,)), layers.data("y", (1,))
    loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
    psrt.optimizer.Sgd(0.01).minimize(loss)


def line_feeds() -> Feeds:
    draw = numbers()
    return [
        {
            "x": draw.normal(size=(ROWS, 13)).astype("f4"),
            "y": draw.normal(size=(ROWS, 1)).astype("f4"),
        }
        for _ in range(STEPS)
    ]


# --- recognize digits: a perceptron by Adam, with dropout ---


def fluid_digits() -> fluid.Variable:
    image = fluid.layers.data(name="img", shape=[1, 8, 8], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    hidden = fluid.layers.fc(input=image, size=20, act="relu")
    hidden = fluid.layers.dropout(hidden, dropout_prob=0.3)
    prediction = fluid.layers.fc(input=hidden, size=10, act="softmax")
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    avg_cost = fluid.layers.mean(cost)
    fluid.layers.accuracy(input=prediction, label=label)
    fluid.optimizer.AdamOptimizer(
        learning_rate=0.01, regularization=fluid.regularizer.L2Decay(0.001)
    ).minimize(avg_cost)
    return avg_cost


def psrt_digits() -> None:
    image, label = layers.data("img", (1, 8, 8)), layers.data("label", (1,), "int64")
    hidden = layers.dropout(layers.fc(image, 20, act="relu"), 0.3)
    prediction = layers.fc(hidden, 10, act="softmax")
    loss = layers.mean(layers.cross_entropy(prediction, label))
    layers.accuracy(prediction, label)
    decay = psrt.regularizer.L2Decay(0.001)
    psrt.optimizer.Adam(0.01, lazy_mode=False, regularization=decay).minimize(loss)


def digit_feeds() -> Feeds:
    draw = numbers()
    return [
        {
            "img": draw.normal(size=(ROWS, 1, 8, 8)).astype("f4"),
            "label": draw.integers(0, 10, (ROWS, 1)),
        }
        for _ in range(STEPS)
    ]


# --- word2vec: an n-gram model whose words share one table, by Momentum ---


def fluid_words() -> fluid.Variable:
    names = [f"word_{i}" for i in range(WORDS)]
    words = [fluid.layers.data(name=name, shape=[1], dtype="int64") for name in names]
    embedded = [
        fluid.layers.embedding(
            input=word,
            size=[DICT, 8],
            dtype="float32",
            is_sparse=True,
            param_attr=fluid.ParamAttr(
                name="shared_w", initializer=fluid.initializer.Normal(loc=0.0, scale=0.1)
            ),
        )
        for word in words
    ]
    joined = fluid.layers.concat(input=embedded, axis=1)
    hidden = fluid.layers.fc(input=joined, size=16, act="sigmoid")
    predicted = fluid.layers.fc(input=hidden, size=DICT, act="softmax")
    next_word = fluid.layers.data(name="next", shape=[1], dtype="int64")
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predicted, label=next_word))
    fluid.optimizer.Momentum(learning_rate=0.1, momentum=0.9).minimize(avg_cost)
    return avg_cost


def psrt_words() -> None:
    words = [layers.data(f"word_{i}", (1,), "int64") for i in range(WORDS)]
    shared = psrt.Param("shared_w", psrt.initializer.Normal(0.0, 0.1))
    tables = [layers.embedding(word, (DICT, 8), is_sparse=True, param=shared) for word in words]
    joined = layers.concat([layers.reshape(rows, (-1, 8)) for rows in tables], axis=1)
    hidden = layers.fc(joined, 16, act="sigmoid")
    predicted = layers.fc(hidden, DICT, act="softmax")
    next_word = layers.data("next", (1,), "int64")
    loss = layers.mean(layers.cross_entropy(predicted, next_word))
    psrt.optimizer.Momentum(0.1, 0.9).minimize(loss)


def word_feeds() -> Feeds:
    draw = numbers()
    names = [*(f"word_{i}" for i in range(WORDS)), "next"]
    return [{name: draw.integers(0, DICT, (ROWS, 1)) for name in names} for _ in range(STEPS)]


# --- click-through rate: lists of ids by a sparse table, and dense numbers, by Adagrad ---


def fluid_clicks() -> fluid.Variable:
    dense = fluid.layers.data(name="dense", shape=[3], dtype="float32")
    slots = [
        fluid.layers.data(name=f"slot_{i}", shape=[1], lod_level=1, dtype="int64") for i in range(2)
    ]
    label = fluid.layers.data(name="click", shape=[1], dtype="int64")
    table = fluid.ParamAttr(name="rows", initializer=fluid.initializer.Uniform(-0.1, 0.1))
    pooled = [
        fluid.layers.sequence_pool(
            input=fluid.layers.embedding(
                input=slot, size=[DICT, 4], is_sparse=True, param_attr=table
            ),
            pool_type="SUM",
        )
        for slot in slots
    ]
    hidden = fluid.layers.fc(
        input=fluid.layers.concat([*pooled, dense], axis=1), size=8, act="relu"
    )
    prediction = fluid.layers.fc(input=hidden, size=2, act="softmax")
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    fluid.layers.auc(input=prediction, label=label)
    avg_cost = fluid.layers.mean(cost)
    rate = fluid.layers.exponential_decay(learning_rate=0.1, decay_steps=2, decay_rate=0.9)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    fluid.optimizer.Adagrad(learning_rate=rate).minimize(avg_cost)
    return avg_cost


def psrt_clicks() -> None:
    dense = layers.data("dense", (3,))
    slots = [layers.data(f"slot_{i}", dtype="int64", ragged=True) for i in range(2)]
    label = layers.data("click", (1,), "int64")
    table = psrt.Param("rows", psrt.initializer.Uniform(-0.1, 0.1))
    rows = [layers.embedding(slot, (DICT, 4), is_sparse=True, param=table) for slot in slots]
    joined = layers.concat([*(layers.sequence_pool(r) for r in rows), dense], axis=1)
    prediction = layers.fc(layers.fc(joined, 8, act="relu"), 2, act="softmax")
    loss = layers.mean(layers.cross_entropy(prediction, label))
    rate = psrt.optimizer.ExponentialDecay(0.1, 2, 0.9)
    psrt.optimizer.Adagrad(rate, grad_clip=psrt.clip.ByGlobalNorm(1.0)).minimize(loss)


def click_feeds() -> Feeds:
    draw = numbers()

    def lists() -> Ragged:
        return Ragged.of(
            [draw.integers(0, DICT, draw.integers(0, 4)).tolist() for _ in range(ROWS)]
        )

    return [
        {
            "dense": draw.normal(size=(ROWS, 3)).astype("f4"),
            "slot_0": lists(),
            "slot_1": lists(),
            "click": draw.integers(0, 2, (ROWS, 1)),
        }
        for _ in range(STEPS)
    ]


MODELS = {
    "fit_a_line": (fluid_line, psrt_line, line_feeds),
    "recognize_digits": (fluid_digits, psrt_digits, digit_feeds),
    "word2vec": (fluid_words, psrt_words, word_feeds),
    "clicks": (fluid_clicks, psrt_clicks, click_feeds),
}
