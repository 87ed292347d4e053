"""Rows and parameters are read by one signature, whoever holds them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import psrt
from psrt.trainer.fitting import Fitted
from psrt.trainer.models.inference import Predictor


def signature(holder: type, method: str) -> Any:
    found = inspect.signature(getattr(holder, method))
    return [(each.name, each.annotation) for each in found.parameters.values()]


@pytest.mark.parametrize("holder", [psrt.ConnectedExecutor, psrt.LocalExecutor, Fitted])
def test_rows_are_pulled_by_ids_of_tables(holder: type) -> None:
    assert signature(holder, "pull_rows") == signature(Predictor, "pull_rows")


def test_a_parameter_is_read_by_its_name() -> None:
    assert signature(Fitted, "parameter") == signature(Predictor, "parameter")
