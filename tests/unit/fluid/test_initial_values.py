"""First values of parameters: arrays, and initializers with a seed of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

VALUES = np.arange(6, dtype=np.float32).reshape(3, 2)


def fc(initializer: Any = None, name: str | None = None) -> Any:
    x = fluid.layers.data("x", [3])
    return fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(name, initializer), bias_attr=False)


def values() -> list[Any]:
    """The values of all parameters after a run of the startup program."""
    fluid.Executor().run(fluid.default_startup_program())
    scope, program = fluid.global_scope(), fluid.default_main_program()
    return [np.array(scope.find_var(p.name).get_tensor()) for p in program.all_parameters()]


def test_a_parameter_begins_with_an_array() -> None:
    initializer = fluid.initializer.NumpyArrayInitializer(VALUES.astype("float64"))
    fc(initializer)
    fc(initializer, "named")

    assert [value.tolist() for value in values()] == [VALUES.tolist()] * 2
    assert fluid.default_main_program().all_parameters()[1].name == "named"


def test_an_array_is_there_again_after_each_run_of_the_startup_program() -> None:
    fc(fluid.initializer.NumpyArrayInitializer(VALUES), "w")
    values()

    fluid.global_scope().find_var("w").get_tensor().set(VALUES + 1)

    assert values()[0].tolist() == VALUES.tolist()


def test_a_layer_that_shares_a_parameter_leaves_its_array() -> None:
    fc(fluid.initializer.NumpyArrayInitializer(VALUES), "w")
    fc(fluid.initializer.Constant(9.0), "w")

    assert [value.tolist() for value in values()] == [VALUES.tolist()]


def test_an_array_of_another_size_is_refused_when_the_startup_program_runs() -> None:
    fc(fluid.initializer.NumpyArrayInitializer(VALUES[:2]), "w")

    with pytest.raises(ProgramError, match=r"w has shape \(3, 2\).*array of shape \(2, 2\)"):
        values()


def test_pservers_take_no_array() -> None:
    loss = fluid.layers.mean(fc(fluid.initializer.NumpyArrayInitializer(VALUES), "w"))
    fluid.optimizer.SGD(0.1).minimize(loss)

    with pytest.raises(ProgramError, match="w begins with an array, which pservers do not have"):
        fluid.DistributeTranspiler().transpile(0, pservers="127.0.0.1:6174", trainers=1)


@pytest.mark.parametrize("kind", ["Uniform", "Normal", "TruncatedNormal", "Xavier", "MSRA"])
def test_a_seed_of_its_own_decides_the_values_whatever_the_program_and_the_name(kind: str) -> None:
    initializer = getattr(fluid.initializer, kind)
    for seed in (3, 3, 4, 0):
        fc(initializer(seed=seed))

    first, same, other, of_program = values()

    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, of_program)


def test_parameters_of_a_seed_are_shared_and_cloned_as_others_are() -> None:
    fc(fluid.initializer.Uniform(seed=3), "w")
    fc(fluid.initializer.Uniform(seed=5), "w")
    before = values()

    assert len(before) == 1
    assert fluid.default_main_program().clone(for_test=True).all_parameters()[0].name == "w"


def test_values_are_computed_on_the_cpu_in_any_case() -> None:
    with fluid.initializer.init_on_cpu():
        fc(fluid.initializer.Constant(2.0))

    assert values()[0].tolist() == [[2.0, 2.0]] * 3
    assert fluid.initializer.force_init_on_cpu() is False
