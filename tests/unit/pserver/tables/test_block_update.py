"""A block that is updated in pieces, by two threads, holds the bits of one updated whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.specs.optimizers import LAYER_WISE
from psrt.pserver.tables import block_update
from psrt.pserver.tables.block_update import BlockUpdate, Source, compensated, mean_of
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from tests.support.optimizer_formulas import OPTIMIZERS

SIZE, RATE = 1003, 0.25
f4 = np.float32


def spec_of(optimizer: specs.Optimizer, decay: float = 0.0) -> specs.DenseTableSpec:
    return specs.DenseTableSpec(
        name="w",
        parameter="w",
        shape=(SIZE,),
        offset=0,
        size=SIZE,
        initializer=specs.Constant(0.0),
        optimizer=optimizer,
        learning_rate=specs.ConstantRate(RATE),
        seed=1,
        regularizer=specs.L2Decay(decay) if decay else None,
    )


def numbers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SIZE, f4)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_update, "PIECE", 64)
    monkeypatch.setattr(block_update, "LARGE", SIZE)


@pytest.fixture(params=[0, 1], ids=["alone", "with a helper thread"])
def helpers(request: pytest.FixtureRequest) -> Iterator[HelperThreads]:
    threads = HelperThreads(request.param)
    yield threads
    threads.close()


def after(
    spec: specs.DenseTableSpec, *sources: Source, helpers: HelperThreads = NO_HELPERS
) -> np.ndarray:
    weights, update = numbers(0), BlockUpdate(spec, helpers)
    for version, source in enumerate(sources, start=1):
        update(weights, source, RATE, version)
    return weights


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_pieces_hold_the_bits_of_the_whole(
    name: str, helpers: HelperThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(OPTIMIZERS[name], decay=0.5)
    sources = [
        numbers(1),
        mean_of([numbers(2), numbers(3), numbers(4)], 5),
        compensated(numbers(5), numbers(6), 0.5),
    ]
    whole = after(spec, *sources)

    monkeypatch.setattr(block_update, "PIECE", 64)
    monkeypatch.setattr(block_update, "LARGE", SIZE)

    assert after(spec, *sources, helpers=helpers).tobytes() == whole.tobytes()


@pytest.mark.usefixtures("in_pieces")
def test_a_mean_is_the_sum_in_order_times_one_over_the_trainers() -> None:
    gradients = [numbers(1), numbers(2), numbers(3)]

    found = after(spec_of(specs.Sgd()), mean_of(gradients, 4))

    mean = ((gradients[0] + gradients[1]) + gradients[2]) * f4(0.25)
    np.testing.assert_array_equal(found, numbers(0) - f4(RATE) * mean)


@pytest.mark.usefixtures("in_pieces")
def test_one_trainer_that_was_alone_in_a_round_of_two_counts_half() -> None:
    found = after(spec_of(specs.Sgd()), mean_of([numbers(1)], 2))

    np.testing.assert_array_equal(found, numbers(0) - f4(RATE) * (numbers(1) * f4(0.5)))


@pytest.mark.usefixtures("in_pieces")
def test_decay_is_of_the_weights_before_the_update() -> None:
    found = after(spec_of(specs.Sgd(), decay=0.5), numbers(1))

    decayed = numbers(1) + f4(0.5) * numbers(0)
    np.testing.assert_array_equal(found, numbers(0) - f4(RATE) * decayed)


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("failing", [0, SIZE // 2], ids=["first half", "second half"])
def test_a_failure_of_either_half_is_raised(failing: int, helpers: HelperThreads) -> None:
    def source(part: slice, w: np.ndarray, out: np.ndarray) -> np.ndarray:
        if part.start == failing:
            raise ZeroDivisionError
        return w

    with pytest.raises(ZeroDivisionError):
        after(spec_of(specs.Sgd()), source, helpers=helpers)


@pytest.mark.usefixtures("in_pieces")
def test_halves_are_moved_side_by_side() -> None:
    helpers, meet = HelperThreads(1), threading.Barrier(2)

    def source(part: slice, w: np.ndarray, out: np.ndarray) -> np.ndarray:
        if part.start in (0, SIZE // 2):
            meet.wait(30.0)
        return numbers(1)[part]

    found = after(spec_of(specs.Sgd()), source, helpers=helpers)
    helpers.close()

    np.testing.assert_array_equal(found, numbers(0) - f4(RATE) * numbers(1))


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("optimizer", LAYER_WISE, ids=lambda each: each.__name__)
def test_optimizers_that_take_norms_get_the_whole_block(optimizer: type) -> None:
    parts = []

    def source(part: slice, w: np.ndarray, out: np.ndarray) -> np.ndarray:
        parts.append(part)
        return w.copy()

    after(spec_of(optimizer()), source)

    assert parts == [slice(0, SIZE)]
