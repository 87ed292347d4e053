"""Scopes below scopes, numbers in them, and values that are read by name."""

from __future__ import annotations

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DataError, ProgramError
from psrt.fluid import core, default_scope_funcs, executor

layers = fluid.layers


def test_a_var_is_found_once_it_was_asked_for_and_from_the_scopes_below() -> None:
    scope = core.Scope()
    assert scope.find_var("a") is None

    scope.var("a").get_tensor().set(np.arange(3), fluid.CPUPlace())
    below = scope.new_scope().new_scope()
    scope.var("b")

    found = below.find_var("a")
    assert found is not None
    np.testing.assert_array_equal(np.array(found.get_tensor()), [0, 1, 2])
    assert below.find_var("b") is not None
    assert not below.find_var("b").get_tensor()._is_initialized()  # type: ignore[union-attr]

    below.var("a")
    scope.erase(["a", "b"])
    assert scope.find_var("a") is None
    assert scope.find_var("b") is None
    assert below.find_var("a") is not None


def test_a_var_may_hold_a_whole_number() -> None:
    number = core.Scope().var("count")

    with pytest.raises(ProgramError, match=r"count holds no number\. Call its set_int"):
        number.get_int()
    number.set_int(10)

    assert number.is_int()
    assert number.get_int() == 10


def test_scopes_are_stacked() -> None:
    default_scope_funcs.var("outside")
    seen = []

    def inside() -> None:
        default_scope_funcs.var("inside")
        seen.append([default_scope_funcs.find_var(name) for name in ("outside", "inside")])

    default_scope_funcs.scoped_function(inside)

    assert None not in seen[0]
    assert default_scope_funcs.find_var("inside") is None


def test_values_of_the_scope_are_read_by_name() -> None:
    x = layers.data("x", shape=[2])
    out = layers.fc(x, 3, param_attr=fluid.ParamAttr(name="w"))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program()
    w = fluid.global_scope()["w"]

    np.testing.assert_array_equal(executor._fetch_var("w"), w)
    np.testing.assert_array_equal(fluid.io.get_parameter_value_by_name("w", exe, program), w)
    names = [var.name for var in fluid.io.get_program_persistable_vars(program)]
    assert names == ["w", "fc_0.b_0"]
    with pytest.raises(ProgramError, match="is no parameter"):
        fluid.io.get_parameter_value(out, exe)


def test_fetched_tensors_become_arrays_unless_they_have_lengths() -> None:
    plain = fluid.LoDTensor(np.ones((2, 1)))
    lists = fluid.create_lod_tensor(np.ones((3, 1)), [[1, 2]], fluid.CPUPlace())

    assert [each.shape for each in executor.as_numpy([plain, plain])] == [(2, 1), (2, 1)]
    assert lists._get_float_element(2) == 1.0
    lists._set_float_element(2, 5.0)
    assert lists._get_float_element(2) == 5.0
    with pytest.raises(DataError, match="with a LoD"):
        executor.as_numpy(lists)


@pytest.mark.parametrize("values", [[1, 3, 5], []])
def test_a_run_leaves_a_persistable_tensor_in_its_scope_in_its_own_dtype(values: list[int]) -> None:
    given = np.array(values, np.int32)
    kept = layers.create_tensor("int32", name="kept", persistable=True)
    layers.assign(given, kept)
    layers.assign(given, layers.create_tensor("int32", name="gone"))

    assert fluid.Executor().run(feed={}, fetch_list=[]) == []

    found = executor._fetch_var("kept")
    assert (found.tolist(), found.dtype) == (values, np.int32)
    assert fluid.global_scope().find_var("gone") is None
