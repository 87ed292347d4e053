"""Gradients of this host are handed over without a copy, unless others may write to them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

from psrt.torch.staging import start_to_host  # noqa: E402


def test_a_gradient_of_its_own_memory_is_not_copied() -> None:
    gradient = torch.ones(3)

    assert np.shares_memory(start_to_host(gradient).numbers(), gradient.numpy())


def test_a_view_of_a_bucket_is_copied_before_a_later_backward_writes_to_it() -> None:
    bucket = torch.ones(6)
    with torch.no_grad():  # as the reducer of DDP makes it
        view = bucket.as_strided((3,), (1,), 0)

    numbers = start_to_host(view).numbers()
    bucket.fill_(7.0)

    np.testing.assert_array_equal(numbers, np.ones(3, np.float32))


def test_numbers_of_another_type_are_converted() -> None:
    assert start_to_host(torch.ones(2, dtype=torch.bfloat16)).numbers().dtype == np.float32
