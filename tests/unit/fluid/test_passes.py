"""Passes of a build strategy: what the two that have an effect do, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError

layers = fluid.layers
X = np.random.default_rng(3).normal(size=(8, 2)).astype("f4")


def batches(size: int) -> Iterator[dict[str, Any]]:
    for at in range(0, len(X), size):
        yield {"x": X[at : at + size]}


def trained(size: int, repeats: int) -> tuple[int, Any]:
    """The number of runs of all data, and the weights after them."""
    with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            x = layers.data("x", [2])
            loss = layers.mean(layers.square(layers.fc(x, 1, param_attr="w") - 1.0))
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
            loader = fluid.io.DataLoader.from_generator([x], iterable=False)
        build = fluid.BuildStrategy()
        passes = build._finalize_strategy_and_create_passes()
        passes.insert_pass(0, "multi_batch_merge_pass").set("num_repeats", repeats)
        compiled = fluid.CompiledProgram(main).with_data_parallel(
            loss.name, build, places=fluid.CPUPlace()
        )
        exe = fluid.Executor()
        exe.run(startup)
        loader.set_batch_generator(lambda: batches(size))
        loader.start()
        runs = 0
        with suppress(fluid.core.EOFException):
            while True:
                exe.run(compiled, fetch_list=[loss])
                runs += 1
        return runs, np.array(fluid.global_scope().find_var("w").get_tensor())


def test_merged_batches_are_one_run_with_the_gradient_of_all() -> None:
    merged, alone = trained(2, repeats=2), trained(4, repeats=1)

    assert merged[0] == alone[0] == 2
    np.testing.assert_allclose(merged[1], alone[1], rtol=1e-6)


def test_a_graph_is_drawn_where_a_pass_says(tmp_path: Path) -> None:
    x = layers.data("x", [2])
    out = layers.exp(x)
    build, drawing = fluid.BuildStrategy(fuse_elewise_add_act_ops=True), tmp_path / "graph.dot"
    passes = build._finalize_strategy_and_create_passes()
    passes.append_pass("graph_viz_pass").set("graph_viz_path", str(drawing))
    passes.append_pass("graph_viz_pass")
    passes.remove_pass(2)
    compiled = fluid.CompiledProgram(fluid.default_main_program(), build).with_data_parallel()

    fluid.Executor().run(compiled, feed={"x": X}, fetch_list=[out])

    names = [made.type() for made in passes.all_passes()]
    assert names == ["fuse_elewise_add_act_pass", "graph_viz_pass"]
    assert build._finalize_strategy_and_create_passes() is passes
    assert "exp" in drawing.read_text()


def test_a_pass_that_psrt_does_not_have_is_refused_with_the_nearest() -> None:
    passes = fluid.BuildStrategy()._finalize_strategy_and_create_passes()

    with pytest.raises(ConfigError, match=r"psrt does not have it.*Did you mean graph_viz_pass"):
        passes.append_pass("graph_vis_pass")
    with pytest.raises(ConfigError, match="by the fields of the strategy"):
        passes.append_pass("zzz")


def test_what_is_no_program_is_not_compiled() -> None:
    with pytest.raises(TypeError, match="given 'program', which is no Program"):
        fluid.CompiledProgram("program")  # type: ignore[arg-type]
