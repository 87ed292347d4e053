"""Distributed tables of programs that are not transpiled: this process holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

HEIGHT = 20


def network(is_distributed: bool, height: int = HEIGHT) -> tuple[Any, Any]:
    ids = fluid.layers.data("ids", [1], dtype="int64")
    rows = fluid.layers.embedding(
        ids, [height, 3], is_sparse=True, is_distributed=is_distributed, param_attr="table"
    )
    scores = fluid.layers.fc(rows, 1)
    loss = fluid.layers.mean(fluid.layers.square(scores))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return loss, scores


def started() -> fluid.Executor:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


def fed(count: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng(7)
    return [{"ids": draw.integers(0, HEIGHT, (6, 1))} for _ in range(count)]


def table() -> Any:
    return np.array(fluid.global_scope().find_var("table").get_tensor())


def trained(is_distributed: bool, replicas: int) -> Any:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        loss, _ = network(is_distributed)
        exe, program = started(), fluid.default_main_program()
        run = fluid.CompiledProgram(program).with_data_parallel(places=replicas)
        losses = [
            exe.run(run if replicas else program, batch, [loss])[0][0].item() for batch in fed(4)
        ]
        return losses, table()


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_distributed_table_trains_as_any_other_where_there_are_no_pservers(replicas: int) -> None:
    losses, values = trained(True, replicas)
    expected, whole = trained(False, replicas)

    assert losses == expected
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(values, whole)


def test_its_values_are_saved_and_predicted_with(tmp_path: Path) -> None:
    _, scores = network(True)
    exe, (batch, *_) = started(), fed(1)
    exe.run(feed=batch)
    test = fluid.default_main_program().clone(for_test=True)
    (before,) = exe.run(test, batch, [scores])
    values = table()

    fluid.io.save_persistables(exe, str(tmp_path / "vars"))
    fluid.io.save_inference_model(str(tmp_path / "model"), ["ids"], [scores], exe)
    exe.run(fluid.default_startup_program())
    assert (table() != values).any()
    fluid.io.load_persistables(exe, str(tmp_path / "vars"))

    np.testing.assert_array_equal(table(), values)
    np.testing.assert_array_equal(exe.run(test, batch, [scores])[0], before)
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
    predicted = exe.run(program, {feeds[0]: batch["ids"]}, fetches)[0]
    np.testing.assert_allclose(predicted, before, rtol=1e-6)


def test_a_table_too_high_for_one_process_needs_pservers() -> None:
    network(True, 1 << 40)
    exe, (batch,) = started(), fed(1)

    assert fluid.global_scope().find_var("table") is None
    with pytest.raises(ProgramError, match="Nothing holds the rows of the distributed table table"):
        exe.run(feed=batch)
