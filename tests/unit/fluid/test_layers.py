"""Layers under Fluid's names: translated arguments, and refusals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt
import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from psrt.core.tensors import Ragged
from psrt.fluid.adapting.layer_table import INSTEAD, SIGNATURES
from psrt.fluid.layers import LAYERS, signature_of
from psrt.graph.initializer import Xavier

layers = fluid.layers

ELSEWHERE = {
    "Branches",
    "Loop",
    "constant",
    "group_rows",
    "Recurrence",
    "create_lists",
    "list_count",
    "list_read",
    "list_write",
    "sequence_lengths",
    "sequence_nest",
    "sequence_regroup",
    "sequence_repeat",
    "undefined",
    "create_state",
    "sampled_softmax_with_cross_entropy",
    "set_state",
    "print_value",
    "shuffle_rows",
    "simple_img_conv_pool",
    "where",
}
"""Named otherwise (`create_global_var`, `assign`, `reshape`, `DynamicRNN`, `cond`), refused with a
reason, and in fluid.nets."""


def run(*fetches: fluid.Variable, **feed: Any) -> list[Any]:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetches)


def test_every_layer_of_psrt_is_there() -> None:
    assert set(psrt.layers.__all__) - set(LAYERS) == ELSEWHERE
    assert set(dir(layers)) == set(LAYERS)


def test_the_table_is_in_order_and_names_arguments_that_psrt_has() -> None:
    lines = [line for line in SIGNATURES.strip().split("\n") if line[0] != " "]
    assert lines == sorted(lines)

    for name in (line.split("(")[0] for line in lines):
        known = inspect.signature(getattr(psrt.layers, name)).parameters
        for argument in inspect.signature(LAYERS[name]).parameters.values():
            note, renamed = argument.annotation, {"param_attr": "param", "bias_attr": "bias"}
            if note not in ("any", "fixed", "target", "activation") and argument.name != "name":
                plain = argument.name if note is inspect.Parameter.empty else note
                assert renamed.get(plain, plain) in known, (name, argument.name)


def test_arguments_are_taken_in_the_order_of_fluid() -> None:
    x = layers.data("x", [2, 3, 4])

    out = layers.fc(x, 5, 2, None, False, "relu")

    assert out.shape == (-1, 2, 5)
    assert [p.name for p in fluid.default_main_program().all_parameters()] == ["fc_0.w_0"]


def test_an_argument_that_does_not_exist_is_refused_with_the_signature() -> None:
    x = layers.data("x", [2])

    with pytest.raises(ProgramError, match=r"layers.fc .*widht.*It is fc\(input, size, num_"):
        layers.fc(x, 3, widht=3)


def test_what_only_fluid_computes_is_refused_and_what_changes_no_number_is_taken() -> None:
    image = layers.data("image", [1, 4, 4])

    layers.conv2d(image, 2, 3, use_cudnn=False, groups=None)
    with pytest.raises(ProgramError, match=r"layers\.conv2d was given data_format='NHWC'"):
        layers.conv2d(image, 2, 3, data_format="NHWC")


def test_an_error_of_a_layer_names_the_users_line() -> None:
    x = layers.data("x", [2])

    with pytest.raises(ProgramError, match=r"layers.fc \(fc_0\) at test_layers.py:\d+"):
        layers.fc(x, 0)


def test_a_name_that_psrt_has_not_says_what_there_is_instead() -> None:
    for name, instead in INSTEAD.items():
        with pytest.raises(AttributeError) as caught:
            getattr(layers, name)
        assert str(caught.value) == f"psrt has no fluid.layers.{name}. {instead}"
    with pytest.raises(AttributeError, match=r"fluid.layers.embeding. Did you mean embedding\?"):
        _ = layers.embeding
    assert not hasattr(layers, "warpctc")


def test_what_layers_are_named_instead_exists() -> None:
    words = " ".join(INSTEAD.values()).replace(",", " ").replace(".", " ").split()
    named = [words[at + 1] for at, word in enumerate(words) if word == "layers"]

    assert named
    assert set(named) <= {*LAYERS, *psrt.layers.__all__}


# --- data ---


@pytest.mark.parametrize(
    ("declare", "shape"),
    [
        (lambda: layers.data("x", [3]), (-1, 3)),
        (lambda: layers.data("x", [-1, 3]), (-1, 3)),
        (lambda: layers.data("x", [-1, 3], append_batch_size=False), (-1, 3)),
        (lambda: fluid.data("x", [None, 3]), (-1, 3)),
        (lambda: fluid.data("x", shape=[-1, 2, 3]), (-1, 2, 3)),
    ],
)
def test_the_batch_is_in_the_shape_or_is_added(
    declare: Callable[[], fluid.Variable], shape: tuple[int, ...]
) -> None:
    assert declare().shape == shape


def test_nested_lists_are_refused() -> None:
    with pytest.raises(ProgramError, match="lod_level 3"):
        layers.data("x", [1], lod_level=3)


def test_a_lod_level_takes_lists() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    rows = layers.embedding(words, [10, 2], param_attr=fluid.initializer.Constant(0.5))

    (value,) = run(
        layers.sequence_pool(rows, "SUM"), words=Ragged.of([[1, 2, 3], [], [4]], "int64")
    )

    assert words.lod_level == 1
    assert value.tolist() == [[1.5, 1.5], [0.0, 0.0], [0.5, 0.5]]


# --- lookups ---


def test_ids_lose_a_last_dimension_of_one_in_layers_embedding_alone() -> None:
    one, many = layers.data("one", [1], dtype="int64"), layers.data("many", [5, 1], dtype="int64")

    assert layers.embedding(one, [10, 3]).shape == (-1, 3)
    assert layers.embedding(many, [10, 3]).shape == (-1, 5, 3)
    assert fluid.embedding(one, [10, 3]).shape == (-1, 1, 3)


def test_a_table_starts_by_xavier_and_counts_its_padding_from_the_end() -> None:
    ids = layers.data("ids", [1], dtype="int64")

    layers.embedding(ids, [10, 3], padding_idx=-1)

    record = fluid.default_main_program().graph.parameters["embedding_0.w_0"]
    assert record.initializer == Xavier().resolve((10, 3))
    assert record.padding_id == 9


# --- parameters ---


def test_a_parameter_attribute_says_all_there_is_to_say() -> None:
    attr = fluid.ParamAttr(
        name="w",
        initializer=fluid.initializer.Constant(2.0),
        learning_rate=0.5,
        regularizer=fluid.regularizer.L2Decay(0.1),
        trainable=False,
    )

    layers.fc(layers.data("x", [2]), 1, param_attr=attr, bias_attr="b")

    graph = fluid.default_main_program().graph
    asked = fluid.default_main_program().builder.declared["w"]
    assert set(graph.parameters) == {"w", "b"}
    assert (graph.parameters["w"].rate_scale, graph.parameters["w"].trainable) == (0.5, False)
    assert asked.regularizer == psrt.regularizer.L2Decay(0.1)


def test_layers_that_name_one_parameter_share_it() -> None:
    x = layers.data("x", [2])

    layers.fc(x, 1, param_attr="w", bias_attr=False)
    layers.fc(x, 1, param_attr=fluid.ParamAttr(name="w"), bias_attr=False)

    assert len(fluid.default_main_program().all_parameters()) == 1


def test_what_is_no_parameter_attribute_is_refused() -> None:
    x = layers.data("x", [2])

    with pytest.raises(ProgramError, match="3 was given for a parameter"):
        layers.fc(x, 1, param_attr=3)
    with pytest.raises(ProgramError, match="param_attr=False, but computes with a parameter"):
        layers.fc(x, 1, param_attr=False)


def test_a_bare_parameter_is_named_and_begins_as_asked() -> None:
    w = layers.create_parameter([2, 3], "float32", name="w", is_bias=True)

    assert (w.name, w.shape, w.persistable) == ("w", (2, 3), True)
    record = fluid.default_main_program().graph.parameters["w"]
    assert record.initializer == psrt.initializer.Constant(0.0)


# --- layers that are more than names ---


def test_auc_takes_two_columns_and_gives_three_things() -> None:
    scores, label = layers.data("scores", [2]), layers.data("label", [1], dtype="int64")
    running, of_batch, states = layers.auc(scores, label)
    p = np.array([0.1, 0.4, 0.35, 0.8], "f4")
    feed = {"scores": np.stack([1 - p, p], 1), "label": np.array([[0], [0], [1], [1]])}

    values = run(running, of_batch, **feed)

    assert [value.tolist() for value in values] == [[0.75], [0.75]]
    assert [state.persistable for state in states] == [True] * 4
    assert [state.name for state in states] == [f"_generated_var_{n}" for n in range(4)]


def test_counts_of_an_auc_are_set_to_zero_by_fluids_names() -> None:
    scores, label = layers.data("scores", [2]), layers.data("label", [1], dtype="int64")
    areas = layers.auc(scores, label, slide_steps=0)[:2]
    exe, scope = fluid.Executor(), fluid.global_scope()
    exe.run(fluid.default_startup_program())

    def batch(positive: int) -> list[float]:
        feed = {"scores": np.array([[0.6, 0.4], [0.2, 0.8]], "f4")}
        feed["label"] = np.array([[1 - positive], [positive]])
        return [value.item() for value in exe.run(feed=feed, fetch_list=areas)]

    assert [batch(1), batch(0)] == [[1.0, 1.0], [0.5, 0.5]]
    for number in range(4):
        tensor = scope.var(f"_generated_var_{number}").get_tensor()
        tensor.set(np.zeros(tensor._get_dims(), "int64"), fluid.CPUPlace())

    assert batch(0) == [0.0, 0.0]


def test_an_auc_slides_over_the_last_batches() -> None:
    scores, label = layers.data("scores", [1]), layers.data("label", [1], dtype="int64")
    _, sliding, states = layers.auc(scores, label, num_thresholds=7, slide_steps=2)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    def batch(score: float, positive: int) -> float:
        feed = {"scores": np.array([[score]], "f4"), "label": np.array([[positive]])}
        return float(exe.run(feed=feed, fetch_list=[sliding])[0])

    found = [batch(0.9, 1), batch(0.1, 0), batch(0.2, 1), batch(0.05, 1), batch(0.7, 0)]

    # Areas of the last two batches: of one class alone there is none.
    np.testing.assert_equal(found, [np.nan, 1.0, 1.0, np.nan, 0.0])
    window = np.array(fluid.global_scope().find_var(states[0].name).get_tensor())
    assert window.shape == (3, 8)
    assert window[-1].sum() == window[:-1].sum() == 1


def test_sequences_are_padded_by_a_constant() -> None:
    words = layers.data("words", [1], lod_level=1)
    padded, lengths = layers.sequence_pad(words, layers.zeros([1], "float32"), maxlen=3)

    values = run(padded, lengths, words=Ragged.of([[1.0], [2.0, 3.0]], "float32"))

    assert values[0].tolist() == [[1.0, 0.0, 0.0], [2.0, 3.0, 0.0]]
    assert values[1].tolist() == [[1], [2]]
    longest, _ = layers.sequence_pad(words, 0.0)
    values = run(longest, words=Ragged.of([[1.0], [2.0, 3.0]], "float32"))
    assert longest.shape == (-1, -1)
    assert values[0].tolist() == [[1.0, 0.0], [2.0, 3.0]]
    with pytest.raises(ProgramError, match="is no constant"):
        layers.sequence_pad(words, lengths, maxlen=3)


def test_sums_and_constants() -> None:
    x = layers.data("x", [2])
    total = layers.sum([x, x, layers.ones_like(x)])

    values = run(total, layers.zeros([2], "int64"), layers.ones([2], "float32"), x=X)

    assert [value.tolist() for value in values] == [[[3.0, 5.0]], [0, 0], [1.0, 1.0]]


X = np.array([[1.0, 2.0]], "f4")


def test_nets_have_the_convolution_with_its_pool() -> None:
    image = layers.data("image", [1, 8, 8])

    out = fluid.nets.simple_img_conv_pool(
        input=image, num_filters=2, filter_size=3, pool_size=2, pool_stride=2, act="relu"
    )

    assert out.shape == (-1, 2, 3, 3)
    with pytest.raises(AttributeError, match=r"fluid\.nets\.sequence_pool_conv. Did you mean"):
        _ = fluid.nets.sequence_pool_conv


def test_signatures_are_shown_without_notes() -> None:
    assert str(signature_of("softmax")) == "(input, use_cudnn=False, axis=-1, name=None)"


def test_lists_get_other_lengths() -> None:
    x = layers.data("x", [1], lod_level=1)
    like = layers.data("like", [1], dtype="int64", lod_level=1)
    begins = layers.data("begins", [3], append_batch_size=False, dtype="int64")
    outs = [
        layers.lod_reset(x, y=like),
        layers.lod_reset(x, target_lod=[0, 1, 6]),
        layers.lod_reset(x, target_lod=[4, 2]),
        layers.lod_reset(x, begins),
    ]
    with pytest.raises(ValueError, match="both none"):
        layers.lod_reset(x)
    exe = fluid.Executor()
    place = fluid.CPUPlace()
    feed = {
        "x": fluid.create_lod_tensor(np.arange(6.0, dtype="f4")[:, None], [[2, 3, 1]], place),
        "like": fluid.create_lod_tensor(np.zeros((6, 1), "i8"), [[3, 0, 3]], place),
        "begins": np.array([0, 5, 6]),
    }

    found = exe.run(feed=feed, fetch_list=outs, return_numpy=False)

    lengths = [value.recursive_sequence_lengths() for value in found]
    assert lengths == [[[3, 0, 3]], [[1, 5]], [[4, 2]], [[5, 1]]]
    assert np.array(found[0]).reshape(-1).tolist() == [0, 1, 2, 3, 4, 5]
