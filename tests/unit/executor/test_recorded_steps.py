"""Steps recorded in one command list give the results of steps executed one by one."""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.executor.compute import RecordedStep, Step, StepSequence
from psrt.executor.memory import Cell
from psrt.kernels.ops import EagerBackend, backend_for

TRAIN = ("forward", "backward", "optimize")


def doubling(x: Cell, out: Cell) -> RecordedStep:
    """`out` = x + x."""

    def record(commands: EagerBackend) -> None:
        result = out.reserve(x.value.shape)
        commands.copy(x.value, result)
        commands.add(result, x.value)

    return RecordedStep(record, backend_for(np.float32))


def test_every_run_reads_the_arrays_of_its_step() -> None:
    x, out = Cell("x", np.float32, may_alias=True), Cell("out", np.float32)
    step = doubling(x, out)

    for rows, value in [(4, 1), (4, 2), (9, 3), (2, 4)]:
        x.alias(np.full((rows, 2), value, np.float32))
        step()
        np.testing.assert_array_equal(out.value, np.full((rows, 2), 2 * value))


def test_a_step_reads_what_the_commands_before_it_write() -> None:
    x, between, out = (Cell(name, np.float32) for name in ("x", "between", "out"))
    x.reserve((4, 2)).fill(1)
    sequence = StepSequence()

    sequence.run(doubling(x, between))
    sequence.run(doubling(between, out))
    sequence.end()

    np.testing.assert_array_equal(out.value, np.full((4, 2), 4))


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
def test_batches_of_many_sizes_and_new_parameters_give_the_bits_of_steps_executed_one_by_one(
    replicas: int, memory_optimize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, loss = network()
    sizes = [8, 8, 8, 3, 8, 8, 40, 8, 8, 1, 8]

    def losses() -> list[bytes]:
        scope = psrt.Scope()
        scope.init_parameters(program)
        build = psrt.BuildStrategy(memory_optimize=memory_optimize)
        options = psrt.ExecutionStrategy(num_iteration_per_drop_scope=4)
        found = []
        with psrt.ParallelExecutor(
            program, scope, replicas, build, options, keep=[loss]
        ) as executor:
            for number, rows in enumerate(sizes):
                if number == 5:
                    scope["fc_1.w_0"] = scope["fc_1.w_0"] * np.float32(0.5)
                (value,) = executor.run(batch(rows, number), [loss], roles=TRAIN)
                found.append(value.tobytes())
        return found

    def one_by_one(sequence: StepSequence, step: Step) -> None:
        step()

    recorded = losses()
    monkeypatch.setattr(StepSequence, "run", one_by_one)

    assert losses() == recorded
