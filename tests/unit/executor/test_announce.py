"""`on_gradient`: each gradient is told once, complete, as soon as nobody writes it any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import PsrtError
from psrt.core.tensors import SelectedRows
from psrt.executor.ports import Gradient
from psrt.executor.strategies import BuildStrategy, ReduceStrategy
from psrt.partition.transpile import trainer_program


def program_of(clip: psrt.clip.Clip | None = None) -> psrt.Program:
    """A sparse table, a weight shared by two layers' worth of gradients, clipping if asked for."""
    with psrt.program(seed=3) as program:
        x = layers.data("x", shape=(5,))
        ids = layers.data("ids", shape=(2,), dtype="int64")
        label = layers.data("label", shape=(1,))
        words = layers.flatten(layers.embedding(ids, (40, 3), is_sparse=True))
        hidden = layers.fc(layers.concat([x, words]), 7, act="relu")
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), label))
        psrt.optimizer.Sgd(0.1, grad_clip=clip).minimize(loss)
    return trainer_program(program)


def feed(examples: int = 6) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {
        "x": random.standard_normal((examples, 5)).astype(np.float32),
        "ids": random.integers(0, 40, (examples, 2)),
        "label": random.standard_normal((examples, 1)).astype(np.float32),
    }


def copy_of(gradient: Gradient) -> dict[object, np.ndarray]:
    """A dense gradient under one key, a sparse one by id."""
    if isinstance(gradient, SelectedRows):
        return dict(zip(gradient.ids.tolist(), gradient.values.copy(), strict=True))
    return {"all": gradient.copy()}


@pytest.fixture(params=["one by one", "1 replica", "3 replicas"])
def executor_of(request: pytest.FixtureRequest) -> Iterator[Callable[..., psrt.Executor]]:
    made: list[psrt.ParallelExecutor] = []

    def make(program: psrt.Program, **build: object) -> psrt.Executor | psrt.ParallelExecutor:
        scope = psrt.Scope()
        scope.init_parameters(program)
        strategy = BuildStrategy(**build)
        if request.param == "one by one":
            return psrt.Executor(program, scope, build_strategy=strategy)
        made.append(psrt.ParallelExecutor(program, scope, int(request.param[0]), strategy))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


CLIPS = {
    "no clipping": None,
    "each clipped": psrt.clip.ByNorm(0.01),
    "all clipped": psrt.clip.ByGlobalNorm(0.01),
}


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize(
    "passes", [{}, {"memory_optimize": True, "fuse_elewise_add_act_ops": True}]
)
def test_every_gradient_is_told_once_and_as_it_is_in_the_end(executor_of, clip, passes) -> None:
    executor = executor_of(program_of(clip), **passes)
    told: list[tuple[str, dict[object, np.ndarray]]] = []
    executor.on_gradient = lambda name, gradient: told.append((name, copy_of(gradient)))

    executor.run(feed())

    final = executor.gradients()
    assert sorted(name for name, _ in told) == sorted(final)
    for name, values in told:
        expected = copy_of(final[name])
        assert values.keys() == expected.keys()
        for key in values:
            np.testing.assert_array_equal(values[key], expected[key], err_msg=name)


def test_it_is_told_in_every_step_and_for_every_size_of_batch(executor_of) -> None:
    executor = executor_of(program_of())
    told: list[str] = []
    executor.on_gradient = lambda name, gradient: told.append(name)

    for examples in (6, 1, 6):
        executor.run(feed(examples))

    assert len(told) == 3 * len(executor.gradients())


def test_gradients_are_told_in_the_order_backward_makes_them() -> None:
    program = program_of()
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    told: list[str] = []
    executor.on_gradient = lambda name, gradient: told.append(name)

    executor.run(feed())

    assert told == ["fc_1.w_0", "fc_1.b_0", "fc_0.w_0", "fc_0.b_0", "embedding_0.w_0"]


def test_nobody_is_told_of_a_forward_pass_or_once_it_is_taken_off(executor_of) -> None:
    executor = executor_of(program_of())
    told: list[str] = []
    executor.on_gradient = lambda name, gradient: told.append(name)

    executor.run(feed(), roles=("forward",))
    executor.on_gradient = None
    executor.run(feed())

    assert told == []
    assert executor.on_gradient is None


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
def test_training_here_tells_too(executor_of, strategy: ReduceStrategy) -> None:
    with psrt.program(seed=3) as program:
        x = layers.data("x", shape=(5,))
        loss = layers.mean(layers.fc(x, 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    executor = executor_of(program, reduce_strategy=strategy)
    told: list[str] = []
    executor.on_gradient = lambda name, gradient: told.append(name)

    executor.run({"x": feed()["x"]}, roles=("forward", "backward", "optimize"))

    assert sorted(told) == sorted(program.gradients())


def test_a_failure_while_telling_is_a_failure_of_the_step(executor_of) -> None:
    executor = executor_of(program_of())

    def refuse(name: str, gradient: Gradient) -> None:
        raise PsrtError("no room for a gradient")

    executor.on_gradient = refuse

    with pytest.raises(PsrtError, match="no room for a gradient"):
        executor.run(feed())
