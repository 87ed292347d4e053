"""`fluid.contrib`: layers and readers of programs for CPUs."""

from __future__ import annotations

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, ProgramError


def test_rows_of_an_examples_ids_are_summed() -> None:
    ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
    pooled = fluid.contrib.fused_embedding_seq_pool(ids, [10, 4], param_attr="table")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fed = fluid.create_lod_tensor(np.array([[1], [2], [7]]), [[2, 1]])

    (found,) = exe.run(feed={"ids": fed}, fetch_list=[pooled])

    table = np.array(fluid.global_scope().find_var("table").get_tensor())
    np.testing.assert_allclose(found, [table[1] + table[2], table[7]], rtol=1e-6)
    with pytest.raises(ProgramError, match="it sums"):
        fluid.contrib.layers.fused_embedding_seq_pool(ids, [10, 4], combiner="mean")


def test_batches_are_dealt_to_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = fluid.contrib.reader.distributed_batch_reader
    assert list(reader(lambda: iter(range(5)))()) == [0, 1, 2, 3, 4]
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    assert list(reader(lambda: iter(range(5)))()) == [1, 3]
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    with pytest.raises(ConfigError, match="PADDLE_TRAINERS_NUM is 2"):
        reader(lambda: iter(range(5)))


def test_a_name_that_is_missing_is_told() -> None:
    with pytest.raises(AttributeError, match=r"fluid\.contrib"):
        _ = fluid.contrib.slim
