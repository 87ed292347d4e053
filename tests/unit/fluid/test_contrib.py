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


def test_rows_come_in_another_order_each_step_and_gradients_go_back() -> None:
    x = fluid.layers.data("x", [3], stop_gradient=False)
    hidden = fluid.layers.fc(x, 2, bias_attr=False, param_attr="w")
    shuffled = fluid.contrib.layers.shuffle_batch(hidden)
    same = fluid.contrib.layers.shuffle_batch(hidden, seed=7)
    weights = fluid.layers.data("weights", [2])
    loss = fluid.layers.reduce_sum(shuffled * weights)
    (gradient,) = fluid.gradients([loss], [hidden])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(1)
    feed = {"x": rng.normal(size=(9, 3)), "weights": rng.normal(size=(9, 2))}
    feed = {name: value.astype("float32") for name, value in feed.items()}

    steps = [
        exe.run(feed=feed, fetch_list=[hidden, shuffled, same, gradient, loss]) for _ in range(3)
    ]

    orders = []
    for before, after, fixed, back, _ in steps:
        order = [int((before == row).all(1).argmax()) for row in after]
        assert sorted(order) == list(range(9))
        np.testing.assert_array_equal(back[order], feed["weights"])
        np.testing.assert_array_equal(fixed, steps[0][2])
        orders.append(tuple(order))
    assert len({*orders}) == 3


def test_sums_over_all_batches_make_metrics_of_click_rates() -> None:
    chance, click = fluid.layers.data("p", [1]), fluid.layers.data("y", [1], dtype="int64")
    sums = fluid.contrib.layers.ctr_metric_bundle(chance, click)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(2)
    batches = [(rng.random((n, 1)).astype("f4"), rng.integers(0, 2, (n, 1))) for n in (4, 7)]

    for p, y in batches:
        found = exe.run(feed={"p": p, "y": y}, fetch_list=list(sums))

    p, y = (np.concatenate(parts).astype("f8") for parts in zip(*batches, strict=True))
    sigmoid = 1 / (1 + np.exp(-p))
    expected = [((p - y) ** 2).sum(), abs(p - y).sum(), p.sum(), sigmoid.sum(), y.sum(), 11]
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-5)
    assert all(var.persistable for var in sums)


def network() -> None:
    image = fluid.layers.data("image", [1, 8, 8])
    hidden = fluid.nets.simple_img_conv_pool(image, 2, 3, 2, 2, act="relu")
    fluid.layers.fc(hidden, 5, act="softmax")


def test_memory_is_estimated_by_the_size_of_a_batch() -> None:
    x = fluid.layers.data("x", [13])
    fluid.layers.fc(x, 1)

    low, high, unit = fluid.contrib.memory_usage(fluid.default_main_program(), 10)

    assert (round(low, 3), round(high, 3), unit) == (42.0, 44.0, "B")
    assert fluid.contrib.memory_usage(fluid.default_main_program(), 10_000)[2] == "KB"
    with pytest.raises(TypeError, match="not a program"):
        fluid.contrib.memory_usage(None, 1)
    with pytest.raises(ValueError, match="0 examples"):
        fluid.contrib.memory_usage(fluid.default_main_program(), 0)


def test_ops_are_counted_alone_and_in_pairs() -> None:
    network()

    types, pairs = fluid.contrib.op_freq_statistic(fluid.default_main_program())

    assert dict(types)["conv2d"] == dict(types)["fc"] == 1
    assert dict(pairs)["fc->softmax"] == 1
    with pytest.raises(TypeError, match="not a program"):
        fluid.contrib.op_freq_statistic("text")


def test_a_summary_has_a_row_for_each_layer_and_sums(capsys: pytest.CaptureFixture[str]) -> None:
    network()

    fluid.contrib.model_stat.summary(fluid.default_main_program())

    lines = capsys.readouterr().out.splitlines()
    rows = {
        cells[1]: cells for cells in ([c.strip() for c in line.split("|")] for line in lines[1:-2])
    }
    assert rows["conv2d"][2:] == ["(1, 8, 8)", "(2, 6, 6)", "20", "1440"]
    assert rows["fc"][4:] == ["95", "90"]  # 18 · 5 weights and 5 biases
    assert lines[-2].startswith("Total PARAMs: 115(")


def test_a_name_that_is_missing_is_told() -> None:
    with pytest.raises(AttributeError, match=r"fluid\.contrib"):
        _ = fluid.contrib.slim
