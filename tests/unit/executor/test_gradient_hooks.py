"""`GradSink.offer`: each gradient once, complete, as soon as nothing writes it any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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


class Sink:
    """Remembers the gradients that were offered, in order."""

    def __init__(self) -> None:
        self.offered: list[tuple[str, dict[object, np.ndarray]]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.offered]

    def offer(self, name: str, gradient: Gradient) -> None:
        self.offered.append((name, copy_of(gradient)))

    def push(self, gradients: Mapping[str, Gradient]) -> None:
        pass


def copy_of(gradient: Gradient) -> dict[object, np.ndarray]:
    """A dense gradient under one key, a sparse one by id."""
    if isinstance(gradient, SelectedRows):
        return dict(zip(gradient.ids.tolist(), gradient.values.copy(), strict=True))
    return {"all": gradient.copy()}


@pytest.fixture(params=["one by one", "1 replica", "3 replicas"])
def executor_of(request: pytest.FixtureRequest) -> Iterator[Callable[..., psrt.Executor]]:
    made: list[psrt.ParallelExecutor] = []

    def make(
        program: psrt.Program, sink: Sink | None = None, **build: object
    ) -> psrt.Executor | psrt.ParallelExecutor:
        scope = psrt.Scope()
        scope.init_parameters(program)
        strategy = BuildStrategy(**build)
        if request.param == "one by one":
            return psrt.Executor(program, scope, sink=sink, build_strategy=strategy)
        made.append(
            psrt.ParallelExecutor(program, scope, int(request.param[0]), strategy, sink=sink)
        )
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
def test_every_gradient_is_offered_once_and_as_it_is_in_the_end(executor_of, clip, passes) -> None:
    sink = Sink()
    executor = executor_of(program_of(clip), sink, **passes)

    executor.run(feed())

    final = executor.gradients()
    assert sorted(sink.names) == sorted(final)
    for name, values in sink.offered:
        expected = copy_of(final[name])
        assert values.keys() == expected.keys()
        for key in values:
            np.testing.assert_array_equal(values[key], expected[key], err_msg=name)


def test_they_are_offered_in_every_step_and_for_every_size_of_batch(executor_of) -> None:
    sink = Sink()
    executor = executor_of(program_of(), sink)

    for examples in (6, 1, 6):
        executor.run(feed(examples))

    assert len(sink.names) == 3 * len(executor.gradients())


def test_gradients_are_offered_in_the_order_backward_makes_them() -> None:
    program, sink = program_of(), Sink()
    scope = psrt.Scope()
    scope.init_parameters(program)

    psrt.Executor(program, scope, sink=sink).run(feed())

    assert sink.names == ["fc_1.w_0", "fc_1.b_0", "fc_0.w_0", "fc_0.b_0", "embedding_0.w_0"]


def test_a_forward_pass_offers_nothing(executor_of) -> None:
    sink = Sink()

    executor_of(program_of(), sink).run(feed(), roles=("forward",))

    assert sink.names == []


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
def test_a_step_that_updates_here_offers_nothing_early(executor_of, strategy) -> None:
    with psrt.program(seed=3) as program:
        x = layers.data("x", shape=(5,))
        loss = layers.mean(layers.fc(x, 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    sink = Sink()
    executor = executor_of(program, sink, reduce_strategy=strategy)

    executor.run({"x": feed()["x"]}, roles=("forward", "backward", "optimize"))

    assert sink.names == []


def test_a_failure_of_the_sink_is_a_failure_of_the_step(executor_of) -> None:
    class Refusing(Sink):
        def offer(self, name: str, gradient: Gradient) -> None:
            raise PsrtError("no room for a gradient")

    executor = executor_of(program_of(), Refusing())

    with pytest.raises(PsrtError, match="no room for a gradient"):
        executor.run(feed())


def test_the_former_callback_works_and_warns(executor_of) -> None:
    executor, names = executor_of(program_of()), list[str]()

    with pytest.warns(DeprecationWarning, match="on_gradient is deprecated since 0.2"):
        executor.on_gradient = lambda name, gradient: names.append(name)
    executor.run(feed())

    assert sorted(names) == sorted(executor.gradients())
