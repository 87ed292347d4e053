"""Ids of the classes that a sampled loss reads: drawn classes, and paths in a tree.

They depend only on labels, seed and step, so an executor may compute them and fetch their rows
before the step.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F64, I64, Array
from psrt.executor.compute.losses.class_losses import class_labels
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.kernels.ops import sampling

# --- drawing --------------------------------------------------------------------------------------

_SAMPLERS = {
    "uniform": sampling.UNIFORM,
    "log_uniform": sampling.LOG_UNIFORM,
    "custom_dist": sampling.CUSTOM,
}


class _Sampler:
    """The distribution of an op's draws, and the expected number of draws of a class."""

    def __init__(self, op: Bound) -> None:
        self._classes, self._count = op.attrs["num_classes"], op.attrs["num_samples"]
        self._kind, self._seed = _SAMPLERS[op.attrs["sampler"]], op.attrs["seed"]
        weights: F64 = np.array(op.attrs["probabilities"], np.float64)
        probabilities = weights / weights.sum() if len(weights) else weights
        self._keep, self._alias = sampling.alias_table(probabilities)
        self._log_expected = np.log(self._count * probabilities)
        self._context = op.context

    def draw(self, first_example: int, first_column: int, out: I64) -> None:
        """Fill `out` (n, k) from column `first_column` on."""
        distribution = (self._kind, self._classes, self._keep, self._alias)
        where = (self._seed, self._context.step, first_example, first_column)
        sampling.draw(*distribution, *where, out)

    def log_expected(self, ids: I64, out: Array) -> None:
        """`out` = ln(number of samples · P(id))."""
        if self._kind == sampling.CUSTOM:
            np.copyto(out, self._log_expected[ids])
        elif self._kind == sampling.UNIFORM:
            out.fill(math.log(self._count / self._classes))
        else:
            np.add(ids, 1, out=out, casting="unsafe")
            np.log(np.log1p(np.reciprocal(out, out=out), out=out), out=out)
            out += math.log(self._count / math.log(self._classes + 1))


@computes("draw_negatives")
def draw_negatives(op: Bound) -> Step:
    label, out, log_expected = op.one("label"), op.one("out"), op.maybe("log_expected")
    sampler, classes, width = _Sampler(op), op.attrs["num_classes"], 1 + op.attrs["num_samples"]

    def run() -> None:
        labels = class_labels(label.value, classes)
        ids = out.reserve((len(labels), width))
        ids[:, 0] = labels
        sampler.draw(op.context.first_example, 1, ids)
        if log_expected is not None:
            sampler.log_expected(ids, log_expected.reserve(ids.shape))

    return run


@computes("draw_classes")
def draw_classes(op: Bound) -> Step:
    label, out, log_expected = op.one("label"), op.one("out"), op.one("log_expected")
    label_log_expected, sampler = op.one("label_log_expected"), _Sampler(op)
    classes, count = op.attrs["num_classes"], op.attrs["num_samples"]

    def run() -> None:
        labels = class_labels(label.value, classes)
        ids = out.reserve((1, count))
        sampler.draw(sampling.SHARED, 0, ids)
        sampler.log_expected(ids, log_expected.reserve(ids.shape))
        sampler.log_expected(labels[:, None], label_log_expected.reserve((len(labels), 1)))

    return run


# --- paths in a tree ------------------------------------------------------------------------------


@computes("tree_path")
def tree_path(op: Bound) -> Step:
    label, out, signs = op.one("label"), op.one("out"), op.one("signs")
    classes, write = op.attrs["num_classes"], op.kernel(sampling.tree_paths)
    length = op.vars[out.name].shape[1]

    def run() -> None:
        labels = class_labels(label.value, classes)
        shape = (len(labels), length)
        write(labels, classes, out.reserve(shape), signs.reserve(shape))

    return run


@computes("custom_path")
def custom_path(op: Bound) -> Step:
    """Entries after the end of a path become its first node, which is read anyway."""
    table, code, out, signs = (op.one(slot) for slot in ("path_table", "path_code", "out", "signs"))
    nodes = op.attrs["num_classes"]

    def run() -> None:
        path, turns = table.value, code.value
        on_path = path >= 0
        _check_path(path, turns, on_path, nodes)
        ids = out.reserve(path.shape)
        np.copyto(ids, np.maximum(path[:, :1], 0))
        np.copyto(ids, path, where=on_path)
        np.multiply(2 * turns - 1, on_path, out=signs.reserve(path.shape), casting="unsafe")

    return run


def _check_path(path: Array, turns: Array, on_path: Array, nodes: int) -> None:
    if path.size and path.max() >= nodes:
        raise DataError(f"Node {path.max()} of a path is not one of the nodes 0 to {nodes - 1}.")
    wrong = on_path & (turns != 0) & (turns != 1)
    if wrong.any():
        raise DataError(f"Code {turns[wrong][0]} of a path is not 0 or 1.")
