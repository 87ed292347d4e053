"""Mistakes of users are named where they are made, with what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, DataError, ProgramError  # noqa: E402
from psrt.core.specs import Async  # noqa: E402
from psrt.torch import TableSession  # noqa: E402


@pytest.fixture
def session():
    with pt.local() as made:
        yield made


def bags(*names, **options):
    return pt.EmbeddingBagCollection([pt.EmbeddingBagConfig(name, 2, **options) for name in names])


MADE = {
    "torch's arguments": (lambda: pt.EmbeddingBag(1000, 16), "dim 1000 and name 16.*int64 is an"),
    "no width": (lambda: pt.Embedding(0, "items"), "dim 0"),
    "no name": (lambda: pt.Embedding(8, ""), "name ''"),
    "pooling": (lambda: pt.EmbeddingBag(8, "items", mode="avg"), "'avg'.*sum, mean, max"),
    "pooling of a config": (lambda: bags("items", pooling="avg"), "'avg'.*sum, mean, max"),
    "no tables": (lambda: bags(), "no tables"),
    "torch's optimizer": (
        lambda: pt.Embedding(8, "items", optimizer=torch.optim.SGD),
        "items was declared with optimizer.*psrt.torch.optim",
    ),
    "negative rate": (lambda: pt.optim.SGD(lr=-1.0), "lr=-1.0"),
    "rate as text": (lambda: pt.optim.Adagrad(lr="0.1"), "lr='0.1'"),
    "betas": (lambda: pt.optim.Adam(betas=(0.9, 1.0)), "from 0 to below 1"),
    "complex": (
        lambda: pt.DenseOnServer(torch.nn.Linear(2, 1, dtype=torch.complex64)),
        "dense.weight is of torch.complex64",
    ),
    "parameters": (
        lambda: pt.TableOptimizer(torch.nn.Linear(2, 1).parameters()),
        "a Parameter, which is no module.*not model.parameters",
    ),
    "no table": (lambda: pt.TableOptimizer(torch.nn.Linear(2, 1)), "has no tables"),
    "size of another": (lambda: pt.export(bags("items"), {"item": 9}), "item, and the model has i"),
}


@pytest.mark.parametrize(("make", "text"), MADE.values(), ids=MADE)
def test_what_cannot_be_made_is_refused(session, make, text):
    with pytest.raises(ProgramError, match=text):
        make()


ASKED = {
    "offsets of torch": (
        {"a": (torch.arange(3), torch.tensor([0, 1]))},
        "a has 3 ids.*batch \\+ 1",
    ),
    "falling offsets": ({"a": (torch.arange(3), torch.tensor([0, 4, 3]))}, "do not rise from 0"),
    "lengths": (pt.Jagged(["a"], torch.arange(3), torch.tensor([1, 1])), "3 ids, and 2 lengths"),
    "lengths of a feature": (
        pt.Jagged(["a", "b"], torch.arange(3), torch.ones(3, dtype=torch.int64)),
        "a length for each",
    ),
    "negative length": (pt.Jagged(["a"], torch.arange(2), torch.tensor([3, -1])), "2 lengths"),
    "feature twice": (pt.Jagged(["a", "a"], torch.arange(2), torch.ones(2).long()), "a, a"),
    "list": ({"a": [1, 2]}, "feature a"),
    "numbers": ({"a": torch.tensor([float("nan")])}, "torch.float32; nothing was looked up"),
}


@pytest.mark.parametrize(("features", "text"), ASKED.values(), ids=ASKED)
def test_features_that_do_not_fit_together_are_refused(session, features, text):
    with pytest.raises(ProgramError, match=text):
        bags("a")(features)


@pytest.mark.parametrize("ids", [[1, 2], np.array([1, 2])], ids=["list", "array"])
def test_ids_that_are_no_tensor_are_refused(session, ids):
    with pytest.raises(ProgramError, match=r"ids of a are a .*torch.as_tensor"):
        pt.Embedding(2, "a")(ids)


def test_bags_of_a_feature_may_all_be_empty(session):
    found = bags("a")({"a": torch.zeros(3, 0, dtype=torch.int64)})["a"]

    assert torch.equal(found, torch.zeros(3, 2))


def test_any_ids_are_pulled_as_they_are_given(session):
    pt.Embedding(2, "a")
    expected = session.pull({"a": np.array([1, 3])})["a"]

    for ids in ([3, 1, 3], torch.tensor([3, 1, 3]), np.array([3, 1, 3], np.int32)):
        assert np.array_equal(session.pull({"a": ids})["a"], expected[[1, 0, 1]])


def test_one_optimizer_steps_several_modules_of_one_session(session):
    one, other = pt.Embedding(2, "a"), pt.Embedding(2, "b")
    with pt.local():
        elsewhere = pt.Embedding(2, "a")

    names = [group["name"] for group in pt.TableOptimizer([one, other]).param_groups]

    assert names == ["a", "b"]
    with pytest.raises(ProgramError, match="a and a are of different sessions"):
        pt.TableOptimizer([one, elsewhere])


def test_a_session_that_has_ended_begins_no_more():
    session = pt.local()
    with session:
        pass
    with pytest.raises(ProgramError, match="has ended"), session:
        pass


CONNECTED = {
    "no pservers": ({}, "no pservers.*PSRT_TRAINER_ENDPOINTS"),
    "rank": ({"endpoints": "a:1", "trainer_id": 2, "trainers": 2}, "trainer_id is 2"),
    "class of a mode": ({"endpoints": "a:1", "mode": Async}, "no mode"),
}


@pytest.mark.parametrize(("arguments", "text"), CONNECTED.values(), ids=CONNECTED)
def test_a_connection_that_cannot_be_is_refused_at_once(monkeypatch, arguments, text):
    monkeypatch.delenv("PSRT_TRAINER_ENDPOINTS", raising=False)
    with pytest.raises(ConfigError, match=text):
        pt.connect(**arguments)


@pytest.mark.parametrize("ids", [[2**63], ["x"]])
def test_ids_of_an_example_that_are_no_int64_are_refused(ids):
    with pytest.raises(DataError, match="example 1 of a batch has ids"):
        pt.collate([({"a": [1]},), ({"a": ids},)])


def test_objects_without_a_state_are_refused_before_training(session):
    assert isinstance(session, TableSession)
    with pytest.raises(ProgramError, match="step is of type int"):
        pt.Checkpointer(session, step=3)


def test_objects_that_were_not_saved_are_named(tmp_path):
    place = str(tmp_path)
    with pt.local(checkpoint_dir=place) as session:
        pt.Checkpointer(session, model=pt.Embedding(2, "a")).save(place)

    with pt.local(checkpoint_dir=place, resume=1) as session:
        model = pt.Embedding(2, "a")
        with pytest.raises(ConfigError, match=r"no other; it has model. Nothing was loaded"):
            pt.Checkpointer(session, model=model, other=torch.nn.Linear(2, 1)).load(place)


def test_ids_read_ahead_are_whole_numbers(session):
    with pytest.raises(ProgramError, match=r"torch\.float32"):
        list(pt.Prefetch([{"a": torch.zeros(2)}], pt.Embedding(2, "a")))


def test_weights_that_are_no_rows_are_refused(tmp_path):
    with pytest.raises(ProgramError, match=r"shape \(3,\)"):
        pt.save_tables({"a": torch.zeros(3)}, tmp_path / "rows")
