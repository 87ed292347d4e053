"""docs/reference/fluid.md lists the names of `psrt.fluid`, differences and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import PsrtError
from psrt.core.tensors import Ragged
from psrt.fluid import clip, initializer, optimizer
from psrt.fluid.adapting import layer_table
from psrt.fluid.layers import LAYERS, signature_of
from psrt.fluid.names import EDGES
from tests.support.pages import page

TEXT = page("reference/fluid.md")

INSTEAD = {
    "fluid": fluid._INSTEAD,
    "fluid.layers": layer_table.INSTEAD,
    "fluid.optimizer": optimizer._INSTEAD,
    "fluid.initializer": initializer._INSTEAD,
    "fluid.clip": clip._INSTEAD,
}


def rows(head: str) -> list[tuple[str, str]]:
    """The two cells of each row of the table with this head."""
    table = TEXT.split(f"| {head} |\n|---|---|\n")[1].split("\n\n")[0]
    return re.findall(r"^\| (.*?) \| (.*) \|$", table, re.M)


def run(*fetches: Any, program: Any = None, **feed: Any) -> list[Any]:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(program, feed=feed, fetch_list=list(fetches))


def test_the_program_at_the_top_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names: dict[str, Any] = {}

    exec(block, names)

    assert names["value"].shape == (1,)


# --- what is there ---


def test_every_name_is_told_and_no_other() -> None:
    listed = [cell.strip("`").removeprefix("fluid.") for cell, _ in rows("name | what it is")]

    assert sorted(listed) == sorted(fluid.__all__)


@pytest.mark.parametrize(
    "room",
    ["backward", "clip", "core", "initializer", "metrics", "nets", "optimizer", "regularizer"],
)
def test_what_a_room_has_is_told(room: str) -> None:
    listed = dict(rows("name | what it is"))[f"`fluid.{room}`"]
    longer = re.findall(r"each also as `…(\w+)`", listed)
    public = getattr(fluid, room).__all__
    names = [name for name in public if not any(name.endswith(end) for end in longer)]

    methods = {"minimize", "backward", "apply_gradients"} if room == "optimizer" else set()

    assert sorted(set(re.findall(r"`(\w+)`", listed)) - methods) == sorted(names)


def test_every_layer_is_shown_with_its_signature_and_no_other() -> None:
    block = TEXT.split("## Layers")[1].split("```text\n")[1].split("```")[0]

    assert block.splitlines() == [f"{name}{signature_of(name)}" for name in LAYERS]


def test_the_layers_of_psrts_own_are_told() -> None:
    listed = TEXT.split("Of these ")[1].split(" are psrt's own")[0]

    assert re.findall(r"`(\w+)`", listed) == layer_table.OWN.split()


# --- what is refused ---


def test_every_name_that_is_refused_is_told_and_no_other() -> None:
    expected = [
        (f"`{room}.{name}`", what)
        for room, names in INSTEAD.items()
        for name, what in names.items()
    ]

    assert rows("name | what there is instead") == expected


@pytest.mark.parametrize(("name", "what"), rows("name | what there is instead"))
def test_a_name_that_is_told_to_be_refused_is(name: str, what: str) -> None:
    with pytest.raises(AttributeError) as caught:
        eval(name.strip("`"), {"fluid": fluid})

    assert what in str(caught.value)


@pytest.mark.parametrize(("call", "what"), rows("call | what the error says"))
def test_a_call_that_is_told_to_be_refused_is(call: str, what: str) -> None:
    with pytest.raises(PsrtError) as caught:
        eval(call.strip("`"), {"fluid": fluid})

    assert what in str(caught.value)


def test_a_name_of_a_part_that_psrt_will_not_have_is_refused_with_its_line() -> None:
    lines = [part for part, _ in rows("part of Fluid | why, and what to do instead")]

    for part, names in EDGES.items():
        assert [line for line in lines if line.startswith(part)], part
        for name in names.split():
            for room in (fluid, fluid.layers, fluid.optimizer):
                assert not hasattr(room, name), name
    with pytest.raises(AttributeError, match=r"will not have detection, segm.*docs/reference"):
        _ = fluid.layers.roi_align
    with pytest.raises(AttributeError, match="lists what there is"):
        _ = fluid.layers.quux_zzzz


# --- what differs ---


def runs_repeat() -> None:
    def weights() -> Any:
        with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup):
                fluid.layers.fc(fluid.layers.data("x", [3]), 2)
            fluid.Executor().run(startup)
            return np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())

    np.testing.assert_array_equal(weights(), weights())


def names_end_in_out() -> None:
    out = fluid.layers.fc(fluid.layers.data("x", [3]), 2)
    pairs = fluid.backward.append_backward(fluid.layers.mean(out))

    assert out.name == "fc_0.out"
    assert [(p.name, g.name) for p, g in pairs] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD"),
        ("fc_0.b_0", "fc_0.b_0@GRAD"),
    ]


def metrics_are_float64() -> None:
    scores, label = fluid.layers.data("s", [2]), fluid.layers.data("l", [1], dtype="int64")

    assert fluid.layers.accuracy(scores, label).dtype == "float64"
    assert fluid.layers.auc(scores, label)[0].dtype == "float64"


def an_auc_needs_both_classes() -> None:
    scores, label = fluid.layers.data("s", [2]), fluid.layers.data("l", [1], dtype="int64")
    area = fluid.layers.auc(scores, label)[0]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    def of(positive: int) -> float:
        feed = {"s": np.full((1, 2), 0.5, "f4"), "l": np.full((1, 1), positive)}
        return float(exe.run(feed=feed, fetch_list=[area])[0])

    assert np.isnan(of(1))
    assert of(0) == 0.5


def schedules_are_values() -> None:
    assert not isinstance(fluid.layers.noam_decay(8, 4), fluid.Variable)


def rates_are_the_trainers() -> None:
    rate = fluid.layers.exp(fluid.layers.fill_constant([1], "float32", -3.0))
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [3]), 2))
    fluid.optimizer.SGD(rate).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6170", trainers=1)

    job = transpiler.get_trainer_program().job
    assert rate.var.name in {name for op in job.program.ops for name in op.writes()}
    assert {spec.learning_rate.var for spec in job.plan.specs_for("127.0.0.1:6170")} == {
        rate.var.name
    }


def optimizer_state_is_not_saved() -> None:
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [3]), 2))
    fluid.optimizer.Adam(0.1).minimize(loss)

    run(loss, x=np.ones((2, 3), "f4"))

    assert sorted(fluid.global_scope()) == ["fc_0.b_0", "fc_0.w_0"]


def lists_are_ragged() -> None:
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    (value,) = run(fluid.layers.cast(words, "float32"), words=Ragged.of([[1], [2, 3]]))

    assert isinstance(value, Ragged)


def replicas_give_what_they_share_once() -> None:
    weight = fluid.layers.create_parameter([1], name="w")
    loss = fluid.layers.mean(fluid.layers.data("x", [1]) + weight * 0.0)
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=2)

    value, shared = run(loss, weight, program=compiled, x=np.array([[1.0], [2.0], [6.0]], "f4"))

    assert value.tolist() == [1.5, 6.0]
    assert shared.shape == (1,)


def a_fed_batch_is_one_update() -> None:
    start, build = fluid.initializer.Constant(0.0), fluid.BuildStrategy()
    build.async_mode = True
    weight = fluid.layers.create_parameter([1], name="w", default_initializer=start)
    loss = fluid.layers.mean(fluid.layers.data("x", [1]) * weight)
    fluid.optimizer.SGD(1.0).minimize(loss)
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled.with_data_parallel(loss.name, build, places=2)

    run(program=compiled, x=np.array([[1.0], [3.0]], "f4"))

    assert np.array(fluid.global_scope().find_var("w").get_tensor()).tolist() == [-2.0]


def gradients_are_from_before_all_updates() -> None:
    start = fluid.initializer.Constant(1.0)
    w, v = (
        fluid.layers.create_parameter([1], name=name, default_initializer=start) for name in "wv"
    )
    loss = fluid.layers.mean(fluid.layers.data("x", [1]) * w * v)
    fluid.optimizer.SGD(1.0).minimize(loss, parameter_list=["w"])
    fluid.optimizer.SGD(1.0).minimize(loss, parameter_list=["v"])

    run(x=np.ones((1, 1), "f4"))

    scope = fluid.global_scope()
    assert [np.array(scope.find_var(name).get_tensor()).item() for name in "wv"] == [0.0, 0.0]


def shares_may_be_empty() -> None:
    loss = fluid.layers.mean(fluid.layers.data("x", [1]))
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=4)

    assert run(loss, program=compiled, x=np.array([[5.0]], "f4"))[0].tolist() == [5.0]


def sizes_are_not_checked() -> None:
    x = fluid.layers.data("x", [8, 1], append_batch_size=False)

    assert run(fluid.layers.mean(x), x=np.ones((3, 1), "f4"))[0].tolist() == [1.0]


def cuda_beside_another_executor_is_taken() -> None:
    fluid.layers.mean(fluid.layers.data("x", [1]))
    train = fluid.ParallelExecutor()

    assert fluid.ParallelExecutor(use_cuda=True, share_vars_from=train).device_count >= 1


def thread_is_not_read() -> None:
    class Dataset:
        def batches(self) -> Any:
            return iter([{"x": np.ones((1, 1), "f4")}])

    loss = fluid.layers.mean(fluid.layers.data("x", [1]))
    listed: list[Any] = []
    fluid.Executor().train_from_dataset(
        dataset=Dataset(), thread=9, fetch_list=[loss], print_period=1, fetch_handler=listed.append
    )

    assert [values[0].tolist() for values in listed] == [[1.0]]


def startup_of_a_pserver_does_nothing() -> None:
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [3]), 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6170", trainers=1)

    startup = transpiler.get_startup_program("127.0.0.1:6170")

    assert fluid.Executor().run(startup) == []
    assert len(fluid.global_scope()) == 0


def ending_completes() -> None:
    from psrt.fluid.running import connection, ending

    said: list[str] = []

    class Connection:
        def close(self) -> None:
            said.append("completed")

    program = fluid.Program()
    program.connection = Connection()
    connection._open.append(program)
    ending.went_on()
    connection._complete_at_end()

    assert said == ["completed"]
    assert program.connection is None


def branches_with_statistics_are_all_computed() -> None:
    x = fluid.layers.data("x", [1])
    low, high = (fluid.layers.reduce_sum(x) < bound for bound in (0.0, 9.0))
    block = fluid.default_main_program().global_block()

    fluid.layers.cond(low, lambda: fluid.layers.exp(x), lambda: fluid.layers.sqrt(x))
    assert "exp" not in {op.type for op in block.ops}
    fluid.layers.cond(low, lambda: fluid.layers.batch_norm(x), lambda: fluid.layers.sqrt(x))
    split = fluid.layers.IfElse(high)

    assert {"batch_norm", "sqrt", "where"} <= {op.type for op in block.ops}
    assert split.input(x) is x


def results_of_branches_have_one_type() -> None:
    yes = fluid.layers.fill_constant([1], "bool", 1)

    made = fluid.layers.cond(
        yes,
        lambda: fluid.layers.fill_constant([2], "int64", 1),
        lambda: fluid.layers.fill_constant([1, 3], "float32", 2),
    )

    assert (made.shape, made.dtype) == ((1, -1), "float32")


def steps_look_up_dense_rows() -> None:
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    rnn = fluid.layers.DynamicRNN()

    with rnn.block():
        word = rnn.step_input(words)
        rnn.output(fluid.layers.embedding(word, [9, 2], is_sparse=True, param_attr="rows"))

    assert not fluid.default_main_program().graph.parameters["rows"].sparse


def a_table_without_pservers_is_here() -> None:
    ids = fluid.layers.data("ids", [1], dtype="int64")
    fluid.layers.embedding(ids, [9, 2], is_distributed=True, param_attr="small")
    fluid.layers.embedding(ids, [1 << 40, 2], is_distributed=True, param_attr="any")

    fluid.Executor().run(fluid.default_startup_program())

    found = [fluid.global_scope().find_var(name) is not None for name in ("small", "any")]
    assert found == [True, False]


def arrays_are_one_value() -> None:
    zero = fluid.layers.zeros([1], "int64")
    rows = fluid.layers.array_write(fluid.layers.data("x", [3]), zero)
    (found,) = run(rows, x=np.ones((2, 3), "f4"))

    assert found.shape == (2, 1, 3)
    with pytest.raises(PsrtError, match="has other elements"):
        fluid.layers.array_write(zero, zero, rows)


def a_block_leaves_nothing_else() -> None:
    i, n = fluid.layers.zeros([1], "int64"), fluid.layers.ones([1], "int64")
    going = fluid.layers.less_than(i, n)
    with fluid.layers.While(going).block():
        inside = fluid.layers.increment(i, in_place=False)
        fluid.layers.less_than(inside, n, cond=going)

    with pytest.raises(PsrtError, match="leave behind"):
        fluid.layers.increment(inside)


def statistics_do_not_move_in_a_loop() -> None:
    x, zero = fluid.layers.data("x", [2]), fluid.layers.zeros([1], "int64")
    going = fluid.layers.less_than(zero, fluid.layers.ones([1], "int64"))

    def repeated() -> None:
        with fluid.layers.While(going).block():
            fluid.layers.batch_norm(x)
            fluid.layers.less_than(zero, zero, cond=going)

    with pytest.raises(PsrtError, match=r"op batch_norm .* is in the loop"):
        repeated()


def integers_are_int64() -> None:
    made = fluid.layers.cast(fluid.layers.fill_constant([1], "int32", 3), "int32")
    kept = fluid.layers.create_tensor("int32", "kept", persistable=True)
    fluid.layers.assign(made, kept)

    (found,) = run(made)

    assert found.dtype == np.int64
    held = fluid.global_scope().find_var("kept")
    assert held is not None
    assert np.array(held.get_tensor()).dtype == np.int32


def other_passes_are_refused() -> None:
    passes = fluid.BuildStrategy()._finalize_strategy_and_create_passes()

    with pytest.raises(PsrtError, match="psrt does not have it"):
        passes.append_pass("fc_fuse_pass")


DIFFERENCES: dict[str, Callable[[], None]] = {
    "seed 0 draws": runs_repeat,
    "temporary vars": names_end_in_out,
    "accuracy is": metrics_are_float64,
    "AUC is": an_auc_needs_both_classes,
    "a branch is": branches_with_statistics_are_all_computed,
    "branches return": results_of_branches_have_one_type,
    "`DynamicRNN` and": steps_look_up_dense_rows,
    "an array of tensors": arrays_are_one_value,
    "`batch_norm` in": statistics_do_not_move_in_a_loop,
    "integers have": integers_are_int64,
    "passes of": other_passes_are_refused,
    "a var of the block": a_block_leaves_nothing_else,
    "pservers run the ops": rates_are_the_trainers,
    "schedules of": schedules_are_values,
    "optimizer state": optimizer_state_is_not_saved,
    "fetching lists": lists_are_ragged,
    "replicas return": replicas_give_what_they_share_once,
    "a fixed size": sizes_are_not_checked,
    "a batch must": shares_may_be_empty,
    "two `minimize`": gradients_are_from_before_all_updates,
    "with `async_mode`": a_fed_batch_is_one_update,
    "`use_cuda=True`": cuda_beside_another_executor_is_taken,
    "`train_from_dataset`": thread_is_not_read,
    "a table with `is_distributed`": a_table_without_pservers_is_here,
    "a pserver's startup": startup_of_a_pserver_does_nothing,
    "a trainer that ends": ending_completes,
}


@pytest.mark.parametrize(("in_fluid", "here"), rows("in Fluid | here"))
def test_a_difference_is_as_told(in_fluid: str, here: str) -> None:
    (check,) = [check for start, check in DIFFERENCES.items() if in_fluid.startswith(start)]

    check()


def test_no_difference_is_checked_that_is_not_told() -> None:
    assert len(DIFFERENCES) == len(rows("in Fluid | here"))
