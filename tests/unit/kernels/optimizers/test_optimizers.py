"""Update rules agree with numpy to the bit, on blocks and on rows, however they are cut.

The twins below follow the kernels operation by operation in float32; that the formulas are the
published ones is for `tests/conformance/test_tables.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from psrt.core import specs
from psrt.kernels.optimizers import RowTable, TouchedRows, bias_correction, rule_of
from psrt.kernels.optimizers.elementwise import LANES
from psrt.kernels.optimizers.row_headers import HEADER_WORDS, UPDATES_WORD, VERSION_WORD, stamp_
from tests.support.optimizer_formulas import ELEMENT_WISE, OPTIMIZERS

f4 = np.float32
RATE, BLOCK_T = 0.1, 3
SIZES = [0, 1, 15, 16, 17, 1000]
WIDTHS = [1, 3, 8, 16, 17, 64, 100]

# A power of float32 is one library call, and numpy's is another one.
TOLERANCE = {"ftrl_of_another_power": 1e-4}

every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)

# --- twins --------------------------------------------------------------------------------------


def squares(x, lanes):
    """Σ x², element i added to lane i mod `lanes`, the lanes in order."""
    sums = np.zeros(lanes)
    for start in range(0, len(x), lanes):
        part = x[start : start + lanes].astype(np.float64)
        sums[: len(part)] += part * part
    return sum(sums.tolist(), 0.0)


def moments(spec, m, v, g):
    m[:] = f4(spec.beta1) * m + f4(1 - spec.beta1) * g
    v[:] = f4(spec.beta2) * v + f4(1 - spec.beta2) * (g * g)


class Step(NamedTuple):
    """The t-th update of one block or of one row."""

    t: int
    of_rows: bool
    lanes: int
    lr: np.float32 = f4(RATE)


def twin(spec, w, state, g, t, of_rows):
    """The t-th update of one block or of one row of `spec`."""
    lanes = min(LANES, len(w)) if of_rows else LANES
    TWINS[type(spec)](spec, w, state, g, Step(t, of_rows, lanes))


def sgd(spec, w, state, g, step):
    w -= step.lr * g


def momentum(spec, w, state, g, step):
    (v,), mu = state, f4(spec.momentum)
    v[:] = mu * v + g
    w -= step.lr * (g + mu * v) if spec.nesterov else step.lr * v


def adagrad(spec, w, state, g, step):
    (m,) = state
    m += g * g
    w -= step.lr * g / (np.sqrt(m) + f4(spec.epsilon))


def decayed_adagrad(spec, w, state, g, step):
    (m,) = state
    m[:] = f4(spec.decay) * m + f4(1 - spec.decay) * (g * g)
    w -= step.lr * g / (np.sqrt(m) + f4(spec.epsilon))


def adadelta(spec, w, state, g, step):
    (a, b), eps = state, f4(spec.epsilon)
    rho, rest = f4(spec.rho), f4(1 - spec.rho)
    a[:] = rho * a + rest * (g * g)
    delta = g * np.sqrt((b + eps) / (a + eps))
    b[:] = rho * b + rest * (delta * delta)
    w -= step.lr * delta


def rms_prop(spec, w, state, g, step):
    rho, rest = f4(spec.rho), f4(1 - spec.rho)
    eps, (a, v, *means) = f4(spec.epsilon), state
    a[:] = rho * a + rest * (g * g)
    variance = a
    for c in means:
        c[:] = rho * c + rest * g
        variance = np.maximum(a - c * c, f4(0))
    v[:] = f4(spec.momentum) * v + step.lr * g / np.sqrt(variance + eps)
    w -= v


def adam(spec, w, state, g, step):
    moments(spec, *state, g)
    step_size, eps_hat = adam_numbers(spec, step.t, RATE, step.of_rows)
    change = step_size * state[0] / (np.sqrt(state[1]) + eps_hat)
    if isinstance(spec, specs.AdamW):
        change += f4(RATE * spec.weight_decay) * w
    w -= change


def adamax(spec, w, state, g, step):
    m, u = state
    m[:] = f4(spec.beta1) * m + f4(1 - spec.beta1) * g
    u[:] = np.maximum(f4(spec.beta2) * u + f4(spec.epsilon), np.abs(g))
    correction = 1 / (1 - spec.beta1**step.t)
    by_rate = f4(RATE / (1 - spec.beta1**step.t))
    w -= (step.lr * f4(correction) if step.of_rows else by_rate) * m / u


def lars_momentum(spec, w, state, g, step):
    (v,), decay = state, f4(spec.lars_weight_decay)
    w_norm, g_norm = norm(w, step), norm(g, step)
    below = g_norm + float(decay) * w_norm
    trust = float(f4(spec.lars_coeff)) * w_norm / below if w_norm * g_norm else 1.0
    v[:] = f4(spec.momentum) * v + f4(float(step.lr) * trust) * (g + decay * w)
    w -= v


def lamb(spec, w, state, g, step):
    moments(spec, *state, g)
    scale, eps_hat = adam_numbers(spec, step.t, 1.0, step.of_rows)
    u = scale * state[0] / (np.sqrt(state[1]) + eps_hat) + f4(spec.lamb_weight_decay) * w
    w_norm, u_norm = norm(w, step), norm(u, step)
    trust = w_norm / u_norm if w_norm * u_norm else 1.0
    w -= f4(float(step.lr) * trust) * u


def add(spec, w, state, g, step):
    w += g


def norm(x, step):
    return math.sqrt(squares(x, step.lanes))


def adam_numbers(spec, t, rate, of_rows):
    """(step_size, eps_hat): of a block computed in double, of rows looked up in a float32 table."""
    root2 = math.sqrt(1 - spec.beta2**t)
    correction = root2 / (1 - spec.beta1**t)
    if of_rows:
        return f4(rate) * f4(correction), f4(spec.epsilon) * f4(root2)
    return f4(rate * root2 / (1 - spec.beta1**t)), f4(spec.epsilon * root2)


def ftrl(spec, w, state, g, step):
    n, z = state
    lr, l1, l2, power = f4(RATE), f4(spec.l1), f4(spec.l2), f4(-spec.lr_power)
    root = np.sqrt if spec.lr_power == -0.5 else lambda x: np.power(x, power)
    before = root(n)
    n += g * g
    after = root(n)
    z += g - w * ((after - before) / lr)
    w[:] = np.where(abs(z) > l1, (np.copysign(l1, z) - z) / (after / lr + (l2 + l2)), f4(0))


TWINS = {
    specs.Sgd: sgd,
    specs.Momentum: momentum,
    specs.Adagrad: adagrad,
    specs.DecayedAdagrad: decayed_adagrad,
    specs.Adadelta: adadelta,
    specs.RmsProp: rms_prop,
    specs.Adam: adam,
    specs.AdamW: adam,
    specs.Adamax: adamax,
    specs.Ftrl: ftrl,
    specs.LarsMomentum: lars_momentum,
    specs.Lamb: lamb,
    specs.Add: add,
}


# --- blocks -------------------------------------------------------------------------------------


def block(name, size):
    """(w, state, g) of one block; state is positive, the gradient read-only."""
    rng = np.random.default_rng(size)
    w = rng.standard_normal(size).astype(np.float32)
    state = rng.random((rule_of(OPTIMIZERS[name]).state_vectors, size)).astype(np.float32)
    gradient = rng.standard_normal(size).astype(np.float32)
    gradient.flags.writeable = False
    return w, state, gradient


def assert_equal(name, got, want):
    if name in TOLERANCE:
        np.testing.assert_allclose(got, want, rtol=TOLERANCE[name], atol=TOLERANCE[name])
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("size", SIZES)
@every_optimizer
def test_block_update_equals_its_twin(name, size):
    (w, state, g), (expected, expected_state, _) = block(name, size), block(name, size)

    rule_of(OPTIMIZERS[name]).update_block(w, state, g, RATE, BLOCK_T)

    twin(OPTIMIZERS[name], expected, list(expected_state), g, BLOCK_T, of_rows=False)
    assert_equal(name, w, expected)
    assert_equal(name, state, expected_state)


@pytest.mark.parametrize("cut", [1, 7, 16, 33])
@pytest.mark.parametrize("name", ELEMENT_WISE)
def test_block_update_does_not_depend_on_how_the_block_is_sliced(name, cut):
    (w, state, g), (sliced, parts, _) = block(name, 100), block(name, 100)
    rule = rule_of(OPTIMIZERS[name])

    rule.update_block(w, state, g, RATE, BLOCK_T)
    rule.update_block(sliced[:cut], parts[:, :cut], g[:cut], RATE, BLOCK_T)
    rule.update_block(sliced[cut:], parts[:, cut:], g[cut:], RATE, BLOCK_T)

    np.testing.assert_array_equal(w, sliced)
    np.testing.assert_array_equal(state, parts)


@pytest.mark.parametrize("name", ["adam", "adamw", "lamb"])
def test_the_rest_of_a_beta_is_as_exact_as_the_beta(name):
    # 1 − f4(0.999) is 0.00099998713, which would make the first step of Adam 6e-6 too long.
    spec, g = OPTIMIZERS[name], np.ones(1, np.float32)
    state = np.zeros((2, 1), np.float32)

    rule_of(spec).update_block(np.ones(1, np.float32), state, g, RATE, 1)

    np.testing.assert_allclose(state[:, 0], [1 - spec.beta1, 1 - spec.beta2], rtol=1e-7)


# --- rows ---------------------------------------------------------------------------------------

COUNTS = [0, 4, 1, 7, 0, 2, 1, 40_000]


def batch(name, width):
    """(slab, slots, order, grads): eight rows of different ages, of which one is not touched."""
    rng = np.random.default_rng(width)
    vectors = 1 + rule_of(OPTIMIZERS[name]).state_vectors
    slab = rng.random((8, HEADER_WORDS + width * vectors)).astype(np.float32)
    slab.view(np.int32)[:, :HEADER_WORDS] = 0
    slab.view(np.int32)[:, UPDATES_WORD] = COUNTS
    slots = np.array([3, 0, 7, 1, 2, 5, 6], np.int32)
    order = np.array([4, 6, 5, 0, 1, 3, 2], np.int32)
    grads = rng.standard_normal((len(slots), width)).astype(np.float32)
    grads.flags.writeable = False
    return slab, slots, order, grads


def update_rows(name, table, slots, order, grads, version=9):
    stamp_(table.weights, table.state, slots, version)
    rule_of(OPTIMIZERS[name]).update_rows(table, TouchedRows(slots, order, grads), RATE, version)


def as_table(slab, width):
    return RowTable(slab, HEADER_WORDS, slab, HEADER_WORDS + width)


@pytest.mark.parametrize("width", WIDTHS)
@every_optimizer
def test_row_update_equals_its_twin(name, width):
    slab, slots, order, grads = batch(name, width)
    spec, expected = OPTIMIZERS[name], slab.copy()

    update_rows(name, as_table(slab, width), slots, order, grads)

    for slot, position in zip(slots, order, strict=True):
        w, *state = expected[slot, HEADER_WORDS:].reshape(-1, width)
        t = COUNTS[slot] + 1 if getattr(spec, "lazy", True) else 9
        twin(spec, w, state, grads[position], t, of_rows=True)
    assert_equal(name, slab[:, HEADER_WORDS:], expected[:, HEADER_WORDS:])


@pytest.mark.parametrize("width", [1, 16, 17])
@every_optimizer
def test_rows_may_have_their_weights_in_an_array_of_their_own(name, width):
    slab, slots, order, grads = batch(name, width)
    weights = np.ascontiguousarray(slab[:, HEADER_WORDS : HEADER_WORDS + width])
    apart = np.hstack([slab[:, :HEADER_WORDS], slab[:, HEADER_WORDS + width :]])

    update_rows(name, as_table(slab, width), slots, order, grads)
    update_rows(name, RowTable(weights, 0, apart, HEADER_WORDS), slots, order, grads)

    np.testing.assert_array_equal(weights, slab[:, HEADER_WORDS : HEADER_WORDS + width])
    np.testing.assert_array_equal(apart[:, HEADER_WORDS:], slab[:, HEADER_WORDS + width :])


@every_optimizer
def test_row_update_of_no_rows_changes_nothing(name):
    slab, slots, order, grads = batch(name, 4)
    before = slab.copy()

    update_rows(name, as_table(slab, 4), slots[:0], order[:0], grads[:0])

    np.testing.assert_array_equal(slab, before)


def test_header_bears_the_version_and_counts_the_updates_of_each_row():
    slab, slots, _, _ = batch("sgd", 4)

    stamp_(slab, slab, slots, 9)

    headers = slab.view(np.int32)
    assert headers[:, UPDATES_WORD].tolist() == [1, 5, 2, 8, 0, 3, 2, 40_001]
    assert headers[:, VERSION_WORD].tolist() == [9, 9, 9, 9, 0, 9, 9, 9]


@pytest.mark.parametrize("name", ["adam_of_all_rows", "adamw_of_all_rows"])
def test_the_rest_of_the_rows_moves_as_by_a_gradient_of_zeros(name):
    slab, _, _, _ = batch(name, 5)
    expected, spec = slab.copy(), OPTIMIZERS[name]
    slab.view(np.int32)[3, VERSION_WORD] = 9

    rule_of(spec).update_rest(as_table(slab, 5), 8, 9, 5, RATE, 9)

    for slot in (1, 2, 5, 6, 7):  # 3 bears the version, 0 and 4 were never updated
        w, *state = expected[slot, HEADER_WORDS:].reshape(-1, 5)
        twin(spec, w, state, np.zeros(5, np.float32), 9, of_rows=False)
    np.testing.assert_array_equal(slab[:, HEADER_WORDS:], expected[:, HEADER_WORDS:])


# --- corrections --------------------------------------------------------------------------------


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0), (0.0, 0.0), (0.99, 0.9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_corrections_end_where_they_are_one(betas, dtype):
    corrections = bias_correction.adam_corrections(*betas, dtype)

    first = math.sqrt(1 - betas[1]) / (1 - betas[0]), math.sqrt(1 - betas[1])
    np.testing.assert_allclose(corrections[0], first, rtol=1e-6)
    np.testing.assert_array_equal(corrections[-1], [1, 1])


FTRL = [name for name, spec in OPTIMIZERS.items() if isinstance(spec, specs.Ftrl)]


@pytest.mark.parametrize("name", FTRL)
def test_nothing_moves_by_ftrl_at_a_rate_of_zero(name):
    w, state, g = block(name, 17)
    slab, slots, order, grads = batch(name, 4)
    before, numbers = (w.copy(), state.copy()), slab[:, HEADER_WORDS:].copy()
    rule, table = rule_of(OPTIMIZERS[name]), as_table(slab, 4)

    rule.update_block(w, state, g, 0.0, BLOCK_T)
    rule.update_rows(table, TouchedRows(slots, order, grads), 0.0, 9)

    np.testing.assert_array_equal(w, before[0])
    np.testing.assert_array_equal(state, before[1])
    np.testing.assert_array_equal(slab[:, HEADER_WORDS:], numbers)
