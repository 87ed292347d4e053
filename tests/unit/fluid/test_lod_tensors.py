"""Tensors of sequences: their lengths are checked, and their memory is shared by DLPack."""

from __future__ import annotations

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DataError

CPU = fluid.CPUPlace()


@pytest.mark.parametrize("lengths", [[[], [1], [3]], [[0], [2], [3]], [[2], [1, -1]]])
def test_lengths_that_do_not_add_up_are_refused(lengths: list[list[int]]) -> None:
    tensor = fluid.LoDTensor()

    with pytest.raises(DataError, match="do not add up"):
        tensor.set_recursive_sequence_lengths(lengths)

    assert tensor.recursive_sequence_lengths() == []


def test_lengths_are_compared_with_the_array_that_a_tensor_holds() -> None:
    tensor = fluid.LoDTensor()
    tensor.set_recursive_sequence_lengths([[2, 3], [1, 3, 1, 2, 2]])
    assert tensor.has_valid_recursive_sequence_lengths()

    tensor.set(np.zeros((8, 1)), CPU)

    assert not tensor.has_valid_recursive_sequence_lengths()
    with pytest.raises(DataError, match="of 8 elements"):
        tensor.set_recursive_sequence_lengths([[9]])
    tensor.set_lod([[0, 3, 8]])
    assert tensor.recursive_sequence_lengths() == [[3, 5]]
    with pytest.raises(DataError, match="begin with 0"):
        tensor.set_lod([[1, 8]])


def test_a_tensor_is_asserted_to_have_the_lengths_it_is_created_with() -> None:
    with pytest.raises(AssertionError, match=r"sequences of \[3, 2\]"):
        fluid.create_lod_tensor([[1, 2, 3], [3, 4]], [[2, 2]], CPU)
    with pytest.raises(AssertionError, match="do not divide"):
        fluid.create_lod_tensor(np.zeros((4, 1)), [[2, 3]], CPU)


def test_a_tensor_has_the_number_of_its_dtype_and_its_memory_is_shared_once() -> None:
    tensor = fluid.create_lod_tensor(np.arange(4).reshape(4, 1), [[1, 3]], CPU)

    assert tensor._dtype() == fluid.core.VarDesc.VarType.INT64
    shared = fluid.core.from_dlpack(tensor._to_dlpack())
    assert isinstance(shared, fluid.core.Tensor)
    np.testing.assert_array_equal(np.array(shared), [[0], [1], [2], [3]])
