"""Feeds, saved and loaded values, and metrics in Python."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DataError, ProgramError
from psrt.core.tensors import Ragged

# --- feeds ---


def test_examples_become_arrays_and_lists() -> None:
    image = fluid.layers.data("image", [1, 2, 2])
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    fluid.layers.data("label", [1], dtype="int64")
    feeder = fluid.DataFeeder(feed_list=[image, words, "label"], place=fluid.CPUPlace())

    fed = feeder.feed([([1, 2, 3, 4], [7, 8], 1), (np.zeros((2, 2)), [], 0)])

    assert fed["image"].shape() == [2, 1, 2, 2]
    assert np.array(fed["image"]).dtype == np.float32
    assert np.array(fed["label"]).tolist() == [[1], [0]]
    assert np.array(fed["words"]).tolist() == [[7], [8]]
    assert fed["words"].lod() == [[0, 2, 2]]


def test_an_example_that_does_not_fit_is_named() -> None:
    x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [1])
    feeder = fluid.DataFeeder([x, y])

    with pytest.raises(DataError, match=r"Example 1 .* has 1 values, but the feeder feeds x, y"):
        feeder.feed([([1, 2, 3], 1), ([1, 2, 3],)])
    with pytest.raises(DataError, match="values of x, declared with shape"):
        feeder.feed([([1, 2], 1)])


def test_each_replica_has_a_feed() -> None:
    feeder = fluid.DataFeeder([fluid.layers.data("x", [1])])

    fed = feeder.feed_parallel([[(1,)], [(2,), (3,)]], num_places=2)

    assert [np.array(part["x"]).tolist() for part in fed] == [[[1.0]], [[2.0], [3.0]]]


def test_a_lod_tensor_is_made_of_elements_and_lengths() -> None:
    made = [
        fluid.create_lod_tensor(np.array([[1], [2], [3]]), [[2, 0, 1]], fluid.CPUPlace()),
        fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]]),
    ]

    assert [np.array(tensor).tolist() for tensor in made] == [[[1], [2], [3]]] * 2
    assert [tensor.lod() for tensor in made] == [[[0, 2, 2, 3]], [[0, 2, 3]]]
    assert [tensor.recursive_sequence_lengths() for tensor in made] == [[[2, 0, 1]], [[2, 1]]]
    with pytest.raises(DataError, match=r"which the lengths .* do not divide"):
        fluid.create_lod_tensor(np.zeros((3, 1)), [[2, 2]])
    with pytest.raises(DataError, match=r"sequences of \[2\] elements and the lengths \[3\]"):
        fluid.create_lod_tensor([[1, 2]], [[3]])


def test_a_lod_tensor_has_levels_which_may_be_set() -> None:
    tensor = fluid.LoDTensor()
    tensor.set(np.arange(12, dtype=np.float32).reshape(6, 2), fluid.CPUPlace())
    tensor.set_recursive_sequence_lengths([[2, 1], [3, 1, 2]])

    assert tensor.shape() == [6, 2]
    assert tensor.has_valid_recursive_sequence_lengths()
    assert tensor.lod() == [[0, 2, 3], [0, 3, 4, 6]]
    tensor.set_lod([[0, 2, 6]])
    assert tensor.recursive_sequence_lengths() == [[2, 4]]
    tensor.set(np.zeros((7, 2)), fluid.CPUPlace())
    assert not tensor.has_valid_recursive_sequence_lengths()
    with pytest.raises(DataError, match="read before it was set"):
        np.array(fluid.LoDTensor())


def test_random_integers_are_within_the_bounds_and_in_sequences() -> None:
    tensor = fluid.create_random_int_lodtensor([[2, 3]], [1], fluid.CPUPlace(), low=4, high=5)

    assert (tensor.shape(), tensor.lod()) == ([5, 1], [[0, 2, 5]])
    assert set(np.array(tensor).ravel()) <= {4, 5}


def test_readers_are_batched_and_shuffled() -> None:
    def reader() -> range:
        return range(7)

    random.seed(1)
    assert list(fluid.io.batch(reader, 3)()) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(fluid.io.batch(reader, 3, drop_last=True)()) == [[0, 1, 2], [3, 4, 5]]
    shuffled = list(fluid.io.shuffle(reader, 4)())
    assert sorted(shuffled[:4]) == [0, 1, 2, 3]
    assert shuffled != list(range(7))


# --- files ---


def classifier() -> tuple[fluid.Variable, fluid.Variable]:
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    label = fluid.layers.data("label", [1], dtype="int64")
    rows = fluid.layers.embedding(words, [20, 4], is_sparse=True, param_attr="table/rows")
    scores = fluid.layers.fc(fluid.layers.sequence_pool(rows, "sum"), 2, act="softmax")
    fluid.layers.auc(scores, label)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(scores, label))
    fluid.optimizer.SGD(0.5).minimize(loss)
    return scores, loss


FEED: dict[str, Any] = {"words": Ragged.of([[1, 2], [3], [4]]), "label": np.array([[0], [1], [1]])}


def trained() -> tuple[fluid.Executor, fluid.Variable]:
    scores, _ = classifier()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(3):
        exe.run(feed=FEED)
    return exe, scores


@pytest.mark.parametrize("filename", [None, "all"])
def test_vars_are_what_they_were_once_loaded(tmp_path: Path, filename: str | None) -> None:
    exe, _ = trained()
    program, scope = fluid.default_main_program(), fluid.global_scope()
    names = [v.name for v in program.list_vars() if v.persistable]
    saved = {name: np.array(scope.find_var(name).get_tensor()) for name in names}
    fluid.io.save_persistables(exe, str(tmp_path / "here"), program, filename=filename)
    exe.run(fluid.default_startup_program())

    fluid.io.load_persistables(exe, str(tmp_path / "here"), program, filename=filename)

    assert len(names) == 8
    assert len(list((tmp_path / "here").iterdir())) == (8 if filename is None else 1)
    for name in names:
        np.testing.assert_array_equal(scope.find_var(name).get_tensor(), saved[name])


def test_parameters_alone_are_saved_and_loaded(tmp_path: Path) -> None:
    exe, _ = trained()

    fluid.io.save_params(exe, tmp_path)
    fluid.io.load_params(exe, tmp_path)

    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert files == ["fc_0.b_0", "fc_0.w_0"]
    assert (tmp_path / "table" / "rows").is_file()


def test_a_file_that_is_missing_or_holds_another_shape_is_named(tmp_path: Path) -> None:
    exe, _ = trained()
    fluid.io.save_params(exe, tmp_path)
    np.save(tmp_path / "fc_0.b_0.npy", np.zeros(3, "f4"))
    np.savez(tmp_path / "some.npz", other=np.zeros(3))

    # Files of an earlier psrt are found first.
    with pytest.raises(DataError, match=r"fc_0.b_0 has shape \(2,\), but .*holds shape \(3,\)"):
        fluid.io.load_vars(exe, tmp_path, vars=["fc_0.b_0"])
    with pytest.raises(DataError, match=r"_generated_var_2 cannot be read: No such file"):
        fluid.io.load_vars(exe, tmp_path, vars=["_generated_var_2"])
    with pytest.raises(DataError, match=r"does not have it"):
        fluid.io.load_vars(exe, tmp_path, vars=["fc_0.b_0"], filename="some.npz")


def test_a_saved_model_predicts_as_the_program_did(tmp_path: Path) -> None:
    exe, scores = trained()
    test = fluid.default_main_program().clone(for_test=True)
    (expected,) = exe.run(test, feed=FEED, fetch_list=[scores])

    with pytest.warns(UserWarning, match="have set the auc states to zeros"):
        names = fluid.io.save_inference_model(str(tmp_path / "m"), ["words"], [scores], exe)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "m"), exe)
        (got,) = exe.run(program, feed={"words": FEED["words"]}, fetch_list=fetches)

    assert names == [scores.name]
    assert feeds == ["words"]
    np.testing.assert_array_equal(got, expected)


def test_what_is_on_pservers_is_not_loaded_here(tmp_path: Path) -> None:
    exe, _ = trained()
    fluid.io.save_params(exe, tmp_path)
    fluid.DistributeTranspiler().transpile(0, pservers="127.0.0.1:6170", trainers=1)

    with pytest.raises(ProgramError, match="whose parameters are on pservers"):
        fluid.io.load_params(exe, tmp_path)


# --- metrics ---


def test_accuracies_are_weighed() -> None:
    accuracy = fluid.metrics.Accuracy()
    with pytest.raises(ProgramError, match="has no value before the first update"):
        accuracy.eval()

    accuracy.update(value=np.array([0.5]), weight=2)
    accuracy.update(value=1.0, weight=6)

    assert accuracy.eval() == 0.875
    accuracy.reset()
    accuracy.update(0.25, 1)
    assert accuracy.eval() == 0.25


def test_what_is_no_program_is_neither_saved_nor_loaded(tmp_path: Path) -> None:
    for move in (fluid.io.load_vars, fluid.io.save_persistables):
        with pytest.raises(TypeError, match="'program', which is not a Program"):
            move(fluid.Executor(), tmp_path, "program")


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order() -> None:
    draw = np.random.default_rng(2)
    scores, labels = draw.integers(0, 4096, 200) / 4095, draw.integers(0, 2, (200, 1))
    ones, zeros = scores[labels[:, 0] == 1], scores[labels[:, 0] == 0]
    pairs = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
    auc = fluid.metrics.Auc(name="auc")
    assert np.isnan(auc.eval())

    for part in np.split(np.arange(200), 4):
        auc.update(np.stack([1 - scores, scores], 1)[part], labels[part])

    assert auc.eval() == pytest.approx(pairs.mean())
    with pytest.raises(ProgramError, match="only ROC"):
        fluid.metrics.Auc(curve="PR")


class Errors(fluid.metrics.MetricBase):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.count, self.seen = 0, np.zeros(2)
        self._kept = 3

    def update(self, preds: Any, labels: Any) -> None:
        self.count += 1
        self.seen += np.asarray(preds) - np.asarray(labels)


def test_a_metric_of_ones_own_begins_anew() -> None:
    metric = Errors()
    metric.update([1, 2], [1, 1])

    assert str(metric) == "Errors"
    assert metric.get_config()["states"]["count"] == 1
    metric.reset()
    assert (metric.count, metric.seen.tolist(), metric._kept) == (0, [0, 0], 3)
    with pytest.raises(NotImplementedError, match="Errors does not implement eval"):
        metric.eval()
