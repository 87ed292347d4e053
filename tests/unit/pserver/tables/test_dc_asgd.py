"""Delay compensation: which values a late gradient is compared with, and what that is worth.

The oracle is the update rule of Zheng et al. 2017 (DC-ASGD, algorithm 2) in plain numpy.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.kernels.tables.initialize import fill_block
from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.weight_backups import KEPT, WeightBackups
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_DENSE, PUSH_DENSE
from tests.support.pserver import CALL_TIMEOUT_S, InprocPserver, inproc_pserver

SIZE, RATE, STRENGTH, UPDATES = 12, 0.1, 0.5, 20
pytestmark = pytest.mark.usefixtures("cheap_collections")
START = specs.Uniform(0.5, 1.5)
SPEC = specs.DenseTableSpec(
    name="w",
    parameter="w",
    shape=(SIZE,),
    offset=0,
    size=SIZE,
    initializer=START,
    optimizer=specs.Sgd(),
    learning_rate=specs.ConstantRate(RATE),
    seed=5,
)

f4 = np.float32


def initial() -> np.ndarray:
    values = np.empty(SIZE, np.float32)
    fill_block(START, SPEC.seed, 0, values)
    return values


def gradient(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SIZE, np.float32)


def compensated(g: np.ndarray, w: np.ndarray, pulled: np.ndarray) -> np.ndarray:
    return g + f4(STRENGTH) * g * g * (w - pulled)


def test_a_push_that_is_repeated_after_a_recovery_is_not_compared_with_initial_values() -> None:
    table, again = DenseTable(SPEC, STRENGTH), DenseTable(SPEC, STRENGTH)
    table.read(1)
    table.apply(gradient(1), RATE, 1, 0)
    values, version = table.read(1)
    frozen = table.freeze()
    again.restore([(frozen.meta, frozen.pages())])

    again.apply(gradient(2), RATE, 1, version)

    np.testing.assert_allclose(again.read(1)[0], values - RATE * gradient(2), rtol=1e-6)


# --- what is kept ----------------------------------------------------------------------------


def snapshots(count: int) -> list[np.ndarray]:
    return [np.full(3, number, np.float32) for number in range(count)]


def test_a_gradient_is_compared_with_the_version_it_was_computed_on() -> None:
    backups, values = WeightBackups(), snapshots(4)
    for version in (0, 2, 3):
        backups.keep(7, version, values[version])

    assert backups.computed_on(7, 2) is values[2]
    assert backups.computed_on(7, 3) is values[3]


def test_a_version_that_is_gone_counts_as_the_oldest_that_is_kept() -> None:
    backups, values = WeightBackups(), snapshots(4)
    for version in (1, 3):
        backups.keep(7, version, values[version])
    backups.computed_on(7, 3)

    assert backups.computed_on(7, 1) is values[3]


def test_who_pulls_and_never_pushes_keeps_few_versions() -> None:
    backups, values = WeightBackups(), snapshots(3 * KEPT)
    for version, snapshot in enumerate(values):
        backups.keep(7, version, snapshot)

    assert backups.computed_on(7, 0) is values[-KEPT]


def test_trainers_do_not_share_what_they_pulled() -> None:
    backups, values = WeightBackups(), snapshots(2)
    backups.keep(0, 1, values[1])

    assert backups.computed_on(1, 1) is None


def test_what_a_trainer_pulled_is_let_go_of_when_it_has_finished() -> None:
    table = DenseTable(SPEC, STRENGTH)
    seen = weakref.ref(table.read(0)[0])
    table.apply(gradient(1), RATE, 1)
    gc.collect()
    kept = seen() is not None

    table.release(0)
    gc.collect()

    assert kept
    assert seen() is None


def test_trainers_that_pulled_one_version_share_its_values() -> None:
    table = DenseTable(SPEC, STRENGTH)

    first, second = table.read(0)[0], table.read(1)[0]

    assert first is second


def test_without_compensation_nothing_is_kept() -> None:
    table = DenseTable(SPEC)
    seen = weakref.ref(table.read(0)[0])

    table.apply(gradient(1), RATE, 1)
    gc.collect()

    assert seen() is None


# --- what it computes ------------------------------------------------------------------------


def test_a_late_gradient_moves_the_block_as_published() -> None:
    table = DenseTable(SPEC, STRENGTH)
    old, version = table.read(1)
    table.read(0)
    table.apply(gradient(1), RATE, 0, version)
    between = table.read(0)[0]

    table.apply(gradient(2), RATE, 1, version)

    moved = compensated(gradient(2), between, old)
    np.testing.assert_array_equal(table.read(0)[0], between - f4(RATE) * moved)


def test_a_trainer_that_never_pulled_is_compared_with_the_initial_values() -> None:
    table = DenseTable(SPEC, STRENGTH)
    table.apply(gradient(1), RATE, 0)
    between = table.read(0)[0]

    table.apply(gradient(2), RATE, 1)

    moved = compensated(gradient(2), between, initial())
    np.testing.assert_array_equal(table.read(0)[0], between - f4(RATE) * moved)


def test_a_gradient_is_compensated_before_it_is_regularised() -> None:
    table = DenseTable(
        specs.DenseTableSpec(**{**vars(SPEC), "regularizer": specs.L2Decay(0.3)}), STRENGTH
    )
    table.apply(gradient(1), RATE, 0)
    between = table.read(0)[0]

    table.apply(gradient(2), RATE, 1)

    moved = compensated(gradient(2), between, initial()) + f4(0.3) * between
    np.testing.assert_array_equal(table.read(0)[0], between - f4(RATE) * moved)


def test_a_pushed_gradient_is_left_as_it_came() -> None:
    table = DenseTable(SPEC, STRENGTH)
    table.apply(gradient(1), RATE, 0)
    pushed = gradient(2)
    pushed.flags.writeable = False

    table.apply(pushed, RATE, 1)

    np.testing.assert_array_equal(pushed, gradient(2))


# --- what it is worth ------------------------------------------------------------------------


def descend(compensation: float, delay: int) -> np.ndarray:
    """Σ w²/2 by trainers whose gradients are all `delay` updates old when they are applied."""
    table = DenseTable(SPEC, compensation)
    under_way = [(trainer, *table.read(trainer)) for trainer in range(delay + 1)]
    for _ in range(UPDATES):
        trainer, w, version = under_way.pop(0)
        table.apply(w, RATE, trainer, version)  # the gradient of w²/2 is w
        under_way.append((trainer, *table.read(trainer)))
    return table.read(0)[0]


@pytest.mark.parametrize("delay", [1, 3, 7])
def test_late_gradients_end_nearer_to_training_in_sequence_with_compensation(delay: int) -> None:
    in_sequence = descend(0.0, delay=0)

    late = np.abs(descend(0.0, delay) - in_sequence)
    compensated = np.abs(descend(STRENGTH, delay) - in_sequence)

    assert (compensated < late).all()


def test_gradients_that_are_not_late_train_as_without_compensation() -> None:
    np.testing.assert_array_equal(descend(STRENGTH, delay=0), descend(0.0, delay=0))


# --- through the service ---------------------------------------------------------------------


@pytest.fixture
def pserver() -> Iterator[InprocPserver]:
    with inproc_pserver(trainers=2, mode=specs.Async(dc_asgd=STRENGTH)) as running:
        yield running


def pull(client: Client) -> tuple[np.ndarray, int]:
    header = pb.Header()
    header.parts.add(kind=PULL_DENSE, table="w")
    reply = client.call(Method.PULL, header=header, timeout_s=CALL_TIMEOUT_S)
    return reply.tensors[0], reply.header.parts[0].version


def push(client: Client, pushed: np.ndarray, version: int) -> None:
    header = pb.Header(push_key=client.next_push_key(), step=1)
    header.parts.add(kind=PUSH_DENSE, table="w", version=version)
    client.call(Method.PUSH, header=header, tensors=[pushed], timeout_s=CALL_TIMEOUT_S)


def test_the_strength_of_the_mode_reaches_the_tables(pserver: InprocPserver) -> None:
    one, other = pserver.join(0, SPEC), pserver.join(1, SPEC)
    old, version = pull(other)
    push(one, gradient(1), pull(one)[1])
    pull(one)  # that another trainer has newer values changes nothing
    between = old - f4(RATE) * gradient(1)

    push(other, gradient(2), version)

    moved = compensated(gradient(2), between, old)
    np.testing.assert_array_equal(pull(one)[0], between - f4(RATE) * moved)


def test_a_completed_trainer_leaves_nothing_behind(pserver: InprocPserver) -> None:
    one, other = pserver.join(0, SPEC), pserver.join(1, SPEC)
    seen = weakref.ref(pserver.service.tables.dense("w").read(0)[0])
    push(other, gradient(1), 0)

    one.call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)
    gc.collect()

    assert seen() is None


@pytest.mark.parametrize("strength", [-0.1, float("nan"), float("inf"), "much"])
def test_a_strength_that_makes_no_sense_is_refused(strength: object) -> None:
    mode = specs.Async(dc_asgd=strength)  # type: ignore[arg-type]
    with inproc_pserver(mode=mode) as running, pytest.raises(PsrtError, match="dc_asgd"):
        running.client(0).connect(CALL_TIMEOUT_S)
