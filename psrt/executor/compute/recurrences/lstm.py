"""Long short-term memory (Hochreiter & Schmidhuber 1997), with peepholes (Gers et al. 2002)."""

from __future__ import annotations

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.recurrences.steps import FUNCTIONS, SLOPES, RecurrentStep, steps_of
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.sequence import offsets_of


class _Lstm:
    """Parameters of one op in a step; `peep` has three rows, zeros without peepholes."""

    def __init__(self, op: Bound, weight: Array, bias: Array) -> None:
        self.size, self.weight = weight.shape[0], weight
        size, self.bias = self.size, bias[: 4 * weight.shape[0]]
        self.has_peep = len(bias) > 4 * size
        none = np.zeros((3, size), weight.dtype)
        self.peep = bias[4 * size :].reshape(3, size) if self.has_peep else none
        names = ("gate_activation", "candidate_activation", "cell_activation")
        self.gate, self.candidate, self.cell = (FUNCTIONS[op.attrs[name]] for name in names)
        self.slopes = [SLOPES[op.attrs[name]] for name in names]

    def forward(self, x: Array, h: Array | None, c: Array | None) -> tuple[Array, Array, Array]:
        """Return hidden state, cell and gates (b, 4 · size) of one step."""
        size = self.size
        made = x + self.bias
        if h is not None:
            made += h @ self.weight
        before = np.zeros((len(x), size), x.dtype) if c is None else c
        a, i, f, o = (made[:, k * size : (k + 1) * size] for k in range(4))
        a[:] = self.candidate(a)
        i[:] = self.gate(i + self.peep[0] * before)
        f[:] = self.gate(f + self.peep[1] * before)
        cell = f * before + i * a
        o[:] = self.gate(o + self.peep[2] * cell)
        return o * self.cell(cell), cell, made


def _initial(op: Bound, slot: str, step: RecurrentStep) -> Array | None:
    cell = op.maybe(slot)
    return None if cell is None else cell.value[step.examples]


@computes("lstm")
def lstm(op: Bound) -> Step:
    x, weight, bias = op.each("input", "weight", "bias")
    out, gates, is_reverse = op.one("out"), op.one("gates"), op.attrs["is_reverse"]

    def run() -> None:
        net = _Lstm(op, weight.value, bias.value)
        size, count = net.size, len(x.value)
        result, kept = out.reserve((count, 2 * size)), gates.reserve((count, 4 * size))
        for step in steps_of(offsets_of(x), is_reverse):
            h, c = _initial(op, "h_0", step), _initial(op, "c_0", step)
            if len(step.before):
                h, c = result[step.before, :size], result[step.before, size:]
            hidden, cell, made = net.forward(x.value[step.at], h, c)
            result[step.at, :size], result[step.at, size:], kept[step.at] = hidden, cell, made

    return run


@computes("lstm_grad")
def lstm_grad(op: Bound) -> Step:
    x, weight, bias, out = op.each("input", "weight", "bias", "out")
    gates, grad, is_reverse = op.one("gates"), op.one("out@GRAD"), op.attrs["is_reverse"]
    targets = {s: op.maybe(f"{s}@GRAD") for s in ("input", "weight", "bias", "h_0", "c_0")}

    def run() -> None:
        net = _Lstm(op, weight.value, bias.value)
        size, d_out = net.size, np.array(grad.value)  # what flows back through time is added
        d_gates = np.zeros_like(gates.value)
        d_weight, d_peep = np.zeros_like(weight.value), np.zeros_like(net.peep)
        rows = len(offsets_of(x)) - 1
        d_first = np.zeros((2, rows, size), d_out.dtype)
        for step in reversed(list(steps_of(offsets_of(x), is_reverse))):
            h, c = _initial(op, "h_0", step), _initial(op, "c_0", step)
            if len(step.before):
                h, c = out.value[step.before, :size], out.value[step.before, size:]
            d_made, d_cell = _backward(net, out.value[step.at], gates.value[step.at], c,
                                       d_out[step.at], d_peep)  # fmt: skip
            d_gates[step.at] = d_made
            d_hidden = d_made @ net.weight.T
            if h is not None:
                d_weight += h.T @ d_made
            if len(step.before):
                d_out[step.before, :size] += d_hidden
                d_out[step.before, size:] += d_cell
            else:
                d_first[0, step.examples], d_first[1, step.examples] = d_hidden, d_cell
        d_bias = np.concatenate([d_gates.sum(0), d_peep.reshape(-1)[: len(bias.value) - 4 * size]])
        found = {"input": d_gates, "weight": d_weight, "bias": d_bias}
        found |= {"h_0": d_first[0], "c_0": d_first[1]}
        for slot, target in targets.items():
            if target is not None:
                np.copyto(target.reserve(found[slot].shape), found[slot])

    return run


def _backward(
    net: _Lstm, out: Array, gates: Array, before: Array | None, d: Array, d_peep: Array
) -> tuple[Array, Array]:
    """Return the gradients of the gates before their activation, and of the cell before.

    `out` and `d` (b, 2 · size) are hidden states and cells, and their gradients; adds to `d_peep`.
    """
    size, (gate, candidate, cell) = net.size, net.slopes
    a, i, f, o = (gates[:, k * size : (k + 1) * size] for k in range(4))
    now, old = out[:, size:], np.zeros_like(a) if before is None else before
    seen = net.cell(now)
    d_o = d[:, :size] * seen * gate(o)
    d_now = d[:, size:] + d[:, :size] * o * cell(seen) + d_o * net.peep[2]
    d_a, d_i, d_f = d_now * i * candidate(a), d_now * a * gate(i), d_now * old * gate(f)
    if net.has_peep:
        d_peep += [(d_i * old).sum(0), (d_f * old).sum(0), (d_o * now).sum(0)]
    d_old = d_now * f + d_i * net.peep[0] + d_f * net.peep[1]
    return np.concatenate([d_a, d_i, d_f, d_o], axis=1), d_old
