"""A step is noted again without asking as long as its arrays are those of a step before."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.executor.compute import CachedCommands
from psrt.executor.compute.registry.cached_commands import _MISSES, _REST, MOST_REMEMBERED
from psrt.executor.memory.cells import Cell, GradientCell, Scratch
from psrt.kernels.ops.command_list import backend_for

TRAIN = ("forward", "backward", "optimize")
NEW_TAPE = backend_for(np.float32)


class Doubling:
    """`out` = x + x, noted; counts how often somebody asked what to note."""

    def __init__(self) -> None:
        self.x, self.out = Cell("x", np.float32), Cell("out", np.float32)
        self.scratch = Scratch(np.float32)
        self.asked = 0
        self.step = CachedCommands(self._note, NEW_TAPE, [self.x], [self.out], self.scratch)

    def _note(self, tape) -> None:
        self.asked += 1
        x, result = self.x.value, self.out.reserve(self.x.value.shape)
        copied = self.scratch.reserve(x.shape)
        tape.copy(x, copied)
        tape.copy(x, result)
        tape.add(result, copied)

    def feed(self, value: float, rows: int = 4) -> None:
        self.x.reserve((rows, 2)).fill(value)

    def run(self) -> np.ndarray:
        self.step()
        return self.out.value


def test_the_same_arrays_are_asked_for_once():
    doubling = Doubling()

    for value in (1, 2, 3):
        doubling.feed(value)
        np.testing.assert_array_equal(doubling.run(), np.full((4, 2), 2 * value))

    assert doubling.asked == 1


def test_another_array_is_asked_for():
    doubling = Doubling()
    doubling.feed(1)
    doubling.run()

    doubling.x.value = np.full((4, 2), 5, np.float32)
    result = doubling.run()

    np.testing.assert_array_equal(result, np.full((4, 2), 10))
    assert doubling.asked == 2


def test_arrays_that_come_in_turn_are_asked_for_once_each():
    """As parameters do that pservers send into one of a few sets."""
    doubling = Doubling()
    sets = [np.full((4, 2), value, np.float32) for value in range(MOST_REMEMBERED)]

    for number in [*range(MOST_REMEMBERED), 2, 0, 1, 3, 3, 0] * 3:
        doubling.x.value = sets[number]
        np.testing.assert_array_equal(doubling.run(), np.full((4, 2), 2 * number))

    assert doubling.asked == MOST_REMEMBERED


def test_gradients_that_take_turns_are_asked_for_once_each():
    """As those that a communicator may still read do."""
    doubling = Doubling()
    doubling.out = GradientCell("out", np.float32)
    doubling.step = CachedCommands(doubling._note, NEW_TAPE, [doubling.x], [doubling.out])
    results = []

    for value in range(6):
        doubling.out.swap()
        doubling.feed(value)
        results.append(doubling.run())
        np.testing.assert_array_equal(results[-1], np.full((4, 2), 2 * value))
        if value:
            np.testing.assert_array_equal(results[-2], np.full((4, 2), 2 * value - 2))

    assert doubling.asked == 2
    assert {id(result) for result in results} == {id(results[0]), id(results[1])}


def test_one_more_takes_the_place_of_the_oldest():
    doubling = Doubling()
    sets = [np.full((4, 2), value, np.float32) for value in range(MOST_REMEMBERED + 1)]

    for values in [*sets, *sets[1:], sets[0]]:
        doubling.x.value = values
        np.testing.assert_array_equal(doubling.run(), 2 * values)

    assert doubling.asked == MOST_REMEMBERED + 2
    assert len(doubling.step._memories) == MOST_REMEMBERED


def test_a_result_that_somebody_replaced_is_written_where_it_was():
    """As sums of gradients do: all replicas get the array of the first."""
    doubling = Doubling()
    doubling.feed(1)
    first = doubling.run()
    doubling.out.value = np.zeros((4, 2), np.float32)

    assert doubling.run() is first
    assert doubling.asked == 1


def test_memory_that_was_given_back_is_asked_for():
    doubling = Doubling()
    doubling.feed(1)
    doubling.run()
    doubling.out.drop()

    np.testing.assert_array_equal(doubling.run(), np.full((4, 2), 2))
    assert doubling.asked == 2


def test_memory_that_has_grown_for_another_cell_is_asked_for():
    doubling, other = Doubling(), Cell("other", np.float32)
    other.memory = doubling.out.memory
    doubling.feed(1)
    doubling.run()
    other.reserve((100, 2))

    np.testing.assert_array_equal(doubling.run(), np.full((4, 2), 2))
    assert doubling.asked == 2
    assert doubling.out.value.base is other.memory.owner


def test_another_thread_has_scratch_of_its_own():
    doubling = Doubling()
    doubling.feed(1)
    doubling.run()

    thread = threading.Thread(target=doubling.run)
    thread.start()
    thread.join()

    assert doubling.asked == 2


def test_what_was_computed_while_noting_is_not_remembered():
    asked = []

    def note(tape) -> None:
        asked.append(tape)
        tape.execute()

    cell = Cell("x", np.float32)
    step = CachedCommands(note, NEW_TAPE, [cell])
    step()
    step()

    assert len(asked) == 2


def test_arrays_that_always_change_are_not_kept_for_long():
    doubling = Doubling()
    for value in range(_MISSES + 2):
        doubling.x.value = np.full((4, 2), value, np.float32)
        doubling.run()
    assert not doubling.step._memories

    doubling.feed(7)
    for _ in range(_REST + 2):
        np.testing.assert_array_equal(doubling.run(), np.full((4, 2), 14))
    assert doubling.asked < _MISSES + _REST + 4, "it is remembered again after a while"


def test_what_is_forgotten_is_asked_for():
    doubling = Doubling()
    doubling.feed(1)
    doubling.run()
    doubling.step.forget()

    doubling.run()

    assert doubling.asked == 2


# --- whole executors ------------------------------------------------------------------------------


def network() -> tuple[psrt.Program, str]:
    with psrt.program(seed=3) as program:
        x, y = layers.data("x", (5,)), layers.data("y", (1,))
        hidden = layers.fc(layers.fc(x, 8, act="relu"), 6, act="relu")
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))
        psrt.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return program, loss.name


def batch(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((rows, 5), dtype=np.float32),
        "y": rng.standard_normal((rows, 1), dtype=np.float32),
    }


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("memory_optimize", [False, True])
def test_batches_of_many_sizes_and_new_parameters_give_the_bits_of_an_executor_that_never_remembers(
    replicas, memory_optimize, monkeypatch
):
    program, loss = network()
    sizes = [8, 8, 8, 3, 8, 8, 40, 8, 8, 1, 8]

    def losses() -> list[float]:
        scope = psrt.Scope()
        scope.init_parameters(program)
        build = psrt.BuildStrategy(memory_optimize=memory_optimize)
        how = psrt.ExecutionStrategy(num_iteration_per_drop_scope=4)
        found = []
        with psrt.ParallelExecutor(program, scope, replicas, build, how, keep=[loss]) as executor:
            for number, rows in enumerate(sizes):
                if number == 5:
                    scope["fc_1.w_0"] = scope["fc_1.w_0"] * np.float32(0.5)
                (value,) = executor.run(batch(rows, number), [loss], roles=TRAIN)
                found.append(value.tobytes())
        return found

    remembering = losses()
    monkeypatch.setattr(CachedCommands, "_is_written_to", lambda self, results: False)

    assert losses() == remembering
