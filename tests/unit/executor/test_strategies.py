"""Fields of strategies: known names, choices, and numbers in range."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import psrt
from psrt.core.errors import ConfigError, ErrorCode

BuildStrategy, ExecutionStrategy = psrt.BuildStrategy, psrt.ExecutionStrategy

BAD: list[tuple[Any, str, Any]] = [
    (BuildStrategy, "gradient_scale_strategy", 0),
    (BuildStrategy, "gradient_scale_strategy", "Coeff"),
    (BuildStrategy, "reduce_strategy", 1),
    (BuildStrategy, "reduce_strategy", None),
    (ExecutionStrategy, "num_iteration_per_run", 0),
    (ExecutionStrategy, "num_iteration_per_drop_scope", -1),
    (ExecutionStrategy, "num_threads", -1),
    (ExecutionStrategy, "num_threads", "a"),
    (ExecutionStrategy, "num_threads", 1.5),
    (ExecutionStrategy, "spin_s", "a"),
    (ExecutionStrategy, "spin_s", -0.1),
    (ExecutionStrategy, "spin_s", float("nan")),
]


@pytest.mark.parametrize(("kind", "name", "value"), BAD)
def test_a_value_that_means_nothing_is_refused_however_it_is_set(
    kind: Any, name: str, value: Any
) -> None:
    with pytest.raises(ConfigError, match=f"{name} is .*Give "):
        kind(**{name: value})

    strategy = kind()
    with pytest.raises(ConfigError, match=f"{name} is .*Give "):
        setattr(strategy, name, value)
    assert strategy == kind()


def test_choices_may_be_given_by_name() -> None:
    build = BuildStrategy(reduce_strategy="Reduce", gradient_scale_strategy="One")

    assert build.reduce_strategy is BuildStrategy.ReduceStrategy.Reduce  # type: ignore[attr-defined]
    scale = BuildStrategy.GradientScaleStrategy.One  # type: ignore[attr-defined]
    assert build.gradient_scale_strategy is scale
    assert ExecutionStrategy(num_threads=np.int64(3)).num_threads == 3


def test_a_misspelt_keyword_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="Did you mean fuse_all_optimizer_ops") as refused:
        BuildStrategy(fuse_all_optimiser_ops=True)  # type: ignore[call-arg]

    assert refused.value.code is ErrorCode.CONFIG_UNKNOWN_KEY


def test_a_copy_of_a_strategy_in_use_can_be_changed() -> None:
    build = BuildStrategy(reduce_strategy="Reduce")
    build.freeze()

    copy = dataclasses.replace(build, async_mode=True)
    copy.memory_optimize = True

    assert copy.reduce_strategy is build.reduce_strategy


def program_of() -> tuple[psrt.Program, psrt.Scope]:
    with psrt.program() as program:
        psrt.layers.fc(psrt.layers.data("x", (2,)), 1)
    scope = psrt.Scope()
    scope.init_parameters(program)
    return program, scope


@pytest.mark.parametrize("replicas", ["2", 1.5, -1])
def test_a_number_of_replicas_that_is_none_is_refused(replicas: Any) -> None:
    with pytest.raises(ConfigError, match=r"got replicas="):
        psrt.ParallelExecutor(*program_of(), replicas)


def test_only_replicas_can_be_shared_with() -> None:
    program, scope = program_of()
    one: Any = psrt.Executor(program, scope)

    with pytest.raises(ConfigError, match=r"share_vars_from is of type Executor.*the same scope"):
        psrt.ParallelExecutor(program, share_vars_from=one)
