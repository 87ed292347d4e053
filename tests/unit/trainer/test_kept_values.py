"""Arrays in the position of a trainer: back to the bit, and refused when they are damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest

import psrt
from psrt.core.errors import DataError
from psrt.executor.memory import Scope
from psrt.graph import layers
from psrt.trainer.cuts import ScopeValues
from psrt.trainer.inputs.kept_values import kept_of, plain_of
from psrt.trainer.training.local_parameters import fill_untrained


def position(**arrays: np.ndarray) -> str:
    return json.dumps({"kept": plain_of(arrays)})


@pytest.mark.parametrize(
    "values",
    [np.arange(6, dtype=np.int64).reshape(2, 3), np.float32([np.nan, -0.0]), np.zeros((0, 4))],
    ids=["int64", "float32", "empty"],
)
def test_arrays_come_back_to_the_bit(values: np.ndarray) -> None:
    (found,) = kept_of(position(name=values)).values()

    assert (found.dtype, found.shape) == (values.dtype, values.shape)
    assert found.tobytes() == values.tobytes()
    found[...] = 0  # and may be changed


@pytest.mark.parametrize("text", ["", "completed", "7", "null", '{"epoch": 1}', '{"kept": {}}'])
def test_positions_without_arrays_have_none(text: str) -> None:
    assert kept_of(text) == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [("zlib", "!"), ("zlib", "AAAA"), ("dtype", "object"), ("dtype", "int7"), ("shape", [5])],
)
def test_damaged_arrays_are_refused(field: str, value: object) -> None:
    plain = json.loads(position(name=np.arange(3)))
    plain["kept"]["name"][field] = value

    with pytest.raises(DataError, match="kept values that cannot be read"):
        kept_of(json.dumps(plain))


def test_counters_of_another_program_are_refused() -> None:
    with psrt.program() as program:
        score, label = layers.data("score", shape=(1,)), layers.data("label", shape=(1,))
        layers.auc(score, label, bins=16)
    scope = Scope()
    fill_untrained(scope, program)
    values = ScopeValues(program, scope)
    kept = values.arrays()
    assert sorted(kept) == ["var auc_0.negatives", "var auc_0.positives"]

    values.restore({name: array + 1 for name, array in kept.items()})
    with pytest.raises(DataError, match=r"auc_0.negatives is int64 \(16,\), but int64 \(8,\)"):
        values.restore({name: array[:8] for name, array in kept.items()})

    assert all((scope[name.removeprefix("var ")] == 1).all() for name in kept)
