"""Gated recurrent units (Cho et al. 2014)."""

from __future__ import annotations

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.recurrences.steps import FUNCTIONS, SLOPES, steps_of
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.sequence import offsets_of


def _parts(weight: Array) -> tuple[Array, Array]:
    """The weights (size, 2 · size) of update and reset, and (size, size) of the candidate."""
    size, flat = weight.shape[0], weight.reshape(-1)
    cut = 2 * size * size
    return flat[:cut].reshape(size, 2 * size), flat[cut:].reshape(size, size)


@computes("gru")
def gru(op: Bound) -> Step:
    x, weight, bias, first = *op.each("input", "weight", "bias"), op.maybe("h_0")
    out, gates, is_reverse = op.one("out"), op.one("gates"), op.attrs["is_reverse"]
    gate, candidate = (FUNCTIONS[op.attrs[f"{name}_activation"]] for name in ("gate", "candidate"))
    origin = op.attrs["origin_mode"]

    def run() -> None:
        of_gates, of_candidate = _parts(weight.value)
        size, count = len(of_candidate), len(x.value)
        result, kept = out.reserve((count, size)), gates.reserve((count, 3 * size))
        for step in steps_of(offsets_of(x), is_reverse):
            made = x.value[step.at] + bias.value
            h = np.zeros((len(step.at), size), made.dtype)
            if len(step.before):
                h = result[step.before]
            elif first is not None:
                h = first.value[step.examples]
            made[:, : 2 * size] = gate(made[:, : 2 * size] + h @ of_gates)
            update, reset = made[:, :size], made[:, size : 2 * size]
            new = candidate(made[:, 2 * size :] + (reset * h) @ of_candidate)
            made[:, 2 * size :] = new
            share = 1 - update if origin else update
            result[step.at], kept[step.at] = h + share * (new - h), made

    return run


@computes("gru_grad")
def gru_grad(op: Bound) -> Step:
    x, weight, out, gates = op.each("input", "weight", "out", "gates")
    first, grad, is_reverse = op.maybe("h_0"), op.one("out@GRAD"), op.attrs["is_reverse"]
    targets = {s: op.maybe(f"{s}@GRAD") for s in ("input", "weight", "bias", "h_0")}
    gate, candidate = (SLOPES[op.attrs[f"{name}_activation"]] for name in ("gate", "candidate"))
    origin = op.attrs["origin_mode"]

    def run() -> None:
        of_gates, of_candidate = _parts(weight.value)
        size, d_out = len(of_candidate), np.array(grad.value)  # what flows back is added
        d_gates, d_weight = np.zeros_like(gates.value), np.zeros_like(weight.value)
        d_of_gates, d_of_candidate = _parts(d_weight)
        d_first = np.zeros((len(offsets_of(x)) - 1, size), d_out.dtype)
        for step in reversed(list(steps_of(offsets_of(x), is_reverse))):
            h = np.zeros((len(step.at), size), d_out.dtype)
            if len(step.before):
                h = out.value[step.before]
            elif first is not None:
                h = first.value[step.examples]
            made, d = gates.value[step.at], d_out[step.at]
            update, reset, new = (made[:, k * size : (k + 1) * size] for k in range(3))
            share, sign = (1 - update, -1) if origin else (update, 1)
            d_new = d * share * candidate(new)
            d_reset_h = d_new @ of_candidate.T
            d_both = np.concatenate([sign * d * (new - h), d_reset_h * h], axis=1)
            d_both *= gate(made[:, : 2 * size])
            d_gates[step.at] = np.concatenate([d_both, d_new], axis=1)
            d_of_gates += h.T @ d_both
            d_of_candidate += (reset * h).T @ d_new
            d_h = d * (1 - share) + d_both @ of_gates.T + d_reset_h * reset
            if len(step.before):
                d_out[step.before] += d_h
            else:
                d_first[step.examples] = d_h
        found = {"input": d_gates, "weight": d_weight, "bias": d_gates.sum(0), "h_0": d_first}
        for slot, target in targets.items():
            if target is not None:
                np.copyto(target.reserve(found[slot].shape), found[slot])

    return run
