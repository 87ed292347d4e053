"""Chains of tags: the probability of one of them, and the most probable one."""

from __future__ import annotations

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, Array
from psrt.executor.compute.recurrences.steps import RecurrentStep, steps_of
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.sequence import offsets_of
from psrt.executor.memory import Cell


def _log_sum(x: Array, axis: int) -> Array:
    """ln Σ e^x along an axis."""
    most = x.max(axis=axis, keepdims=True)
    summed: Array = np.log(np.exp(x - most).sum(axis=axis)) + np.squeeze(most, axis)
    return summed


def _tags(label: Cell, count: int) -> I64:
    tags: I64 = label.value.reshape(-1)
    if tags.size and not (tags.min() >= 0 and tags.max() < count):
        wrong = int(tags[(tags < 0) | (tags >= count)][0])
        raise DataError(f"{label.name} holds tag {wrong}, which is not one of 0 to {count - 1}.")
    return tags


def _ends(offsets: I64) -> tuple[I64, I64, I64]:
    """Examples with elements, and the first and last element of each."""
    filled = np.flatnonzero(np.diff(offsets))
    return filled, offsets[filled], offsets[filled + 1] - 1


def _pairs(offsets: I64) -> tuple[I64, I64]:
    """Each element that has one before it, and its example."""
    examples = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    behind = np.setdiff1d(np.arange(int(offsets[-1])), offsets[:-1])
    return behind, examples[behind]


@computes("linear_chain_crf")
def linear_chain_crf(op: Bound) -> Step:
    x, transition, label = op.each("input", "transition", "label")
    out, alpha = op.one("out"), op.one("alpha")

    def run() -> None:
        offsets, weights = offsets_of(x), transition.value
        first, last, between = weights[0], weights[1], weights[2:]
        scores, tags = alpha.reserve(x.value.shape), _tags(label, weights.shape[1])
        for step in steps_of(offsets, is_reverse=False):
            scores[step.at] = x.value[step.at]
            scores[step.at] += (
                _log_sum(scores[step.before][:, :, None] + between, 1)
                if len(step.before)
                else first
            )
        result = out.reserve((len(offsets) - 1, 1))
        result.fill(0)
        filled, begins, ends = _ends(offsets)
        behind, examples = _pairs(offsets)
        result[filled, 0] = _log_sum(scores[ends] + last, 1)
        result[filled, 0] -= first[tags[begins]] + last[tags[ends]]
        of_elements = x.value[np.arange(len(tags)), tags]
        result[filled, 0] -= np.add.reduceat(of_elements, begins) if len(filled) else 0
        np.subtract.at(result[:, 0], examples, between[tags[behind - 1], tags[behind]])

    return run


@computes("linear_chain_crf_grad")
def linear_chain_crf_grad(op: Bound) -> Step:
    x, transition, label, alpha = op.each("input", "transition", "label", "alpha")
    grad, x_grads, w_grads = op.one("out@GRAD"), op.many("input@GRAD"), op.many("transition@GRAD")

    def run() -> None:
        offsets, weights, scores = offsets_of(x), transition.value, alpha.value
        tags, d = _tags(label, weights.shape[1]), grad.value[:, 0]
        last, between = weights[1], weights[2:]
        filled, begins, ends = _ends(offsets)
        total = np.zeros(len(d), scores.dtype)  # ln of the sum over all chains
        total[filled] = _log_sum(scores[ends] + last, 1)
        rest, d_weights = np.zeros_like(scores), np.zeros_like(weights)
        rest[ends] = last
        for step in reversed(list(steps_of(offsets, is_reverse=False))):
            if len(step.before):
                rest[step.before] = _log_sum(between + _onward(step, x, rest), 2)
                pairs = scores[step.before][:, :, None] + between + _onward(step, x, rest)
                shares = np.exp(pairs - total[step.examples, None, None])
                d_weights[2:] += np.tensordot(d[step.examples], shares, 1)
        examples = np.repeat(np.arange(len(d)), np.diff(offsets))
        d_x = np.exp(scores + rest - total[examples, None])
        d_x[np.arange(len(tags)), tags] -= 1
        d_x *= d[examples, None]
        shares_last = np.exp(scores[ends] + last - total[filled, None]) * d[filled, None]
        d_weights[0], d_weights[1] = d_x[begins].sum(0), shares_last.sum(0)
        np.subtract.at(d_weights[1], tags[ends], d[filled])
        behind, of = _pairs(offsets)
        np.subtract.at(d_weights[2:], (tags[behind - 1], tags[behind]), d[of])
        for targets, made in ((x_grads, d_x), (w_grads, d_weights)):
            for target in targets:
                if target is not None:
                    np.copyto(target.reserve(made.shape), made)

    return run


def _onward(step: RecurrentStep, x: Cell, rest: Array) -> Array:
    """Weight of the elements of a step and of all behind them, (examples, 1, tags)."""
    onward: Array = (x.value[step.at] + rest[step.at])[:, None, :]
    return onward


@computes("crf_decoding")
def crf_decoding(op: Bound) -> Step:
    x, transition, label, out = *op.each("input", "transition"), op.maybe("label"), op.one("out")

    def run() -> None:
        offsets, weights = offsets_of(x), transition.value
        best, came_from = np.array(x.value), np.zeros(x.value.shape, np.int64)
        steps = list(steps_of(offsets, is_reverse=False))
        for step in steps:
            if not len(step.before):
                best[step.at] += weights[0]
                continue
            through = best[step.before][:, :, None] + weights[2:]
            came_from[step.at] = through.argmax(1)
            best[step.at] += through.max(1)
        result = out.reserve((len(best), 1))
        path, (_, _, ends) = result[:, 0], _ends(offsets)
        path[ends] = (best[ends] + weights[1]).argmax(1)
        for step in reversed(steps):
            if len(step.before):
                path[step.before] = came_from[step.at, path[step.at]]
        if label is not None:
            path[:] = path == _tags(label, weights.shape[1])

    return run
