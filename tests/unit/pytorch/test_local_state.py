"""State of a torch training in one process: moments of state_dicts, cuts, positions of loaders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt import checkpoint  # noqa: E402
from psrt.cli.checkpoint.contents import position_text  # noqa: E402
from psrt.communicator.base import Beginning  # noqa: E402
from psrt.core.errors import ConfigError, DataError, StorageError  # noqa: E402
from psrt.pserver.checkpoints import compact, find_cut  # noqa: E402
from psrt.storage.locate import directory_at  # noqa: E402
from psrt.torch.cuts import RunPosition  # noqa: E402
from psrt.torch.saving import unread  # noqa: E402

EXAMPLES, BATCH, WIDTH = 23, 4, 3


class Ranker(torch.nn.Module):  # type: ignore[name-defined]
    def __init__(self) -> None:
        super().__init__()
        rule = pt.optim.Adagrad(0.1)
        self.items = pt.EmbeddingBag(WIDTH, "items", "sum", optimizer=rule)
        self.top = torch.nn.Linear(WIDTH, 1)

    def forward(self, ids: Any) -> Any:
        return self.top(self.items(ids))


class Numbers(torch.utils.data.Dataset):  # type: ignore[name-defined]
    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, index: int) -> int:
        return index


class Training:
    """A model, its optimizers, a scheduler and a loader, with what they have trained on."""

    def __init__(self, session: pt.TableSession, workers: int = 0) -> None:
        torch.manual_seed(1)
        self.session, self.model = session, Ranker()
        self.dense = torch.optim.Adam(self.model.top.parameters(), 0.01)
        self.tables = pt.TableOptimizer(self.model)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.tables, 3, 0.5)
        batches = pt.DealtBatches(EXAMPLES, BATCH, seed=5)
        loader = torch.utils.data.DataLoader(Numbers(), batch_sampler=batches, num_workers=workers)
        self.loader = pt.Resumable(loader)
        self.seen: list[int] = []
        self.checkpointer = pt.Checkpointer(
            session,
            model=self.model,
            dense=self.dense,
            tables=self.tables,
            schedule=self.schedule,
            loader=self.loader,
        )

    def batches(self) -> Iterator[Any]:
        while True:
            yield from self.loader

    def train(self, steps: int) -> None:
        for _, ids in zip(range(steps), self.batches(), strict=False):
            self.model(ids[:, None]).sum().backward()
            for each in (self.dense, self.tables):
                each.step()
                each.zero_grad()
            self.schedule.step()
            self.seen += ids.tolist()

    def numbers(self) -> list[np.ndarray]:
        rows = self.session.pull({"items": np.arange(EXAMPLES)})["items"]
        return [rows.copy(), *(p.detach().numpy().copy() for p in self.model.top.parameters())]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_training_goes_on_from_its_cut_with_the_bits_of_one_that_was_not_interrupted(
    tmp_path: Path, workers: int
) -> None:
    place = str(tmp_path)
    with pt.local(seed=2) as session:
        whole = Training(session)
        whole.train(10)
        expected = whole.numbers()
    with pt.local(seed=2, checkpoint_dir=place) as session:
        first = Training(session, workers)
        first.train(4)
        assert first.checkpointer.save(place) == 1
        first.train(2)  # lost: it comes after the cut

    with pt.local(seed=2, checkpoint_dir=place, resume="latest") as session:
        second = Training(session, workers)
        assert second.checkpointer.load(place) == 1
        second.train(6)
        found = second.numbers()

    assert first.seen[: 4 * BATCH] + second.seen == whole.seen
    assert sorted(whole.seen[:EXAMPLES]) == list(range(EXAMPLES))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert second.tables.steps == 10


def test_a_position_behind_the_last_trained_batch_does_not_count_what_was_only_read() -> None:
    with pt.local() as session:
        training = Training(session)
        batches = training.batches()
        for _ in range(3):
            ids = next(batches)
            training.model(ids[:, None]).sum().backward()
        assert training.loader.state_dict()["batches"] == 0
        training.tables.step()
        next(batches)

        state = training.loader.state_dict()

    assert (state["epoch"], state["batches"], state["examples"]) == (0, 3, 3 * BATCH)


def test_old_torch_parts_are_deleted_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    cuts, place = str(tmp_path / "cuts"), tmp_path / "torch"
    with pt.local(checkpoint_dir=cuts) as session:
        training = Training(session)
        saver = pt.Checkpointer(session, keep=2, model=training.model)
        for _ in range(3):
            training.train(1)
            saver.save(str(place))
    assert sorted(each.name for each in place.iterdir()) == ["cut-00000002", "cut-00000003"]
    file = place / "cut-00000003" / "torch-0.pt"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)

    with pt.local(checkpoint_dir=cuts, resume="3") as session:
        saver = pt.Checkpointer(session, model=Training(session).model)
        with pytest.raises(StorageError, match=r"torch-0\.pt.*checksum"):
            saver.load(str(place))
    with pt.local(checkpoint_dir=cuts, resume="1") as session:
        saver = pt.Checkpointer(session, model=Training(session).model)
        with pytest.raises(ConfigError, match=r"began with cut 1, and .* it has those of 2, 3"):
            saver.load(str(place))


def test_a_training_goes_on_from_a_cut_before_its_first_step(tmp_path: Path) -> None:
    with pt.local(checkpoint_dir=str(tmp_path)) as session:
        Training(session).checkpointer.save(str(tmp_path))

    with pt.local(checkpoint_dir=str(tmp_path), resume=1) as session:
        assert Training(session).checkpointer.load(str(tmp_path)) == 1


def test_a_run_keeps_its_identity_without_a_step_among_other_numbers_of_trainers() -> None:
    first, second, third = RunPosition(), RunPosition(), RunPosition()
    at = first.begin(Beginning())
    first.belong_to("run of all")

    again = second.begin(Beginning(1, "", positions=(at(),)))
    second.belong_to(second.resumed_run)
    third.begin(Beginning(2, again()))

    assert third.resumed_run == "run of all"


def test_a_state_that_could_not_be_loaded_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    class Odd:
        def state_dict(self) -> dict[str, Any]:
            return {"path": tmp_path}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise NotImplementedError

    with pt.local(checkpoint_dir=str(tmp_path)) as session:
        Training(session).train(1)
        with pytest.raises(StorageError, match="the state of odd has more than tensors"):
            pt.Checkpointer(session, odd=Odd()).save(str(tmp_path))


def test_a_compacted_cut_keeps_its_torch_part_and_its_position_is_shown(tmp_path: Path) -> None:
    place = str(tmp_path)
    with pt.local(checkpoint_dir=place) as session:
        training = Training(session)
        training.train(3)
        training.checkpointer.save(place)
    cut = find_cut(directory_at(place), "1")

    compact(cut)

    assert position_text(json.loads(cut.position_of(0))) == "3 steps"
    with pt.local(checkpoint_dir=place, resume="1") as session:
        assert Training(session).checkpointer.load(place) == 1


def test_a_state_of_another_moment_is_refused(tmp_path: Path) -> None:
    place = str(tmp_path)
    with pt.local(checkpoint_dir=place) as session:
        training = Training(session)
        training.train(1)
        between = training.model.state_dict()
        training.model.load_state_dict(between)  # of this very moment
        training.checkpointer.save(place)
        at_cut = training.model.state_dict()
        training.train(1)
        with pytest.raises(ConfigError, match="between two cuts, and the tables are") as caught:
            training.model.load_state_dict(between)
        assert "_extra_state" in str(caught.value.hint)
        with pytest.raises(ConfigError, match=r"of cut 1 of run .*, between two cuts"):
            training.model.load_state_dict(at_cut)
        dense = {name: each for name, each in between.items() if "_extra_state" not in name}
        training.model.load_state_dict(dense, strict=False)

    with pt.local(checkpoint_dir=place, resume="1") as session:
        model = Ranker()
        model.load_state_dict(at_cut)
        torch.testing.assert_close(model.top.weight, at_cut["top.weight"])
        with pytest.raises(ConfigError, match="the state is of things"):
            model.items.set_extra_state({**at_cut["items._extra_state"], "tables": ["things"]})


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_distributed_checkpoints_take_a_cut_and_check_it(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    cuts, place = str(tmp_path / "cuts"), str(tmp_path / "dcp")
    with pt.local(checkpoint_dir=cuts) as session:
        training = Training(session)
        training.train(3)
        dcp.save({"psrt": session, "model": training.model}, checkpoint_id=place, no_dist=True)
        expected = training.numbers()

    with pt.local(checkpoint_dir=cuts, resume="latest") as session:
        training = Training(session)
        dcp.load({"psrt": session, "model": training.model}, checkpoint_id=place, no_dist=True)
        for mine, theirs in zip(training.numbers(), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert len(checkpoint.cuts(cuts)) == 1
    with pt.local(checkpoint_dir=cuts) as session:
        training = Training(session)
        training.train(1)
        with pytest.raises(Exception, match=r"the state is of cut 1 of run"):
            dcp.load({"psrt": session, "model": training.model}, checkpoint_id=place, no_dist=True)


def test_without_a_directory_no_cut_is_made_and_none_resumed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without a directory"):
        pt.local(resume="latest")
    with pytest.raises(ConfigError, match="no complete cut 'latest'"):
        pt.local(checkpoint_dir=str(tmp_path), resume="latest")
    with pt.local() as session:
        training = Training(session)
        with pytest.raises(ConfigError, match="this session writes none"):
            training.checkpointer.save(str(tmp_path))


@pytest.mark.parametrize("trained", [[0, 0], [1, 3], [4, 4], [5, 2, 9], [1 << 62, 3]])
def test_what_no_rank_has_trained_is_dealt_once(trained: list[int]) -> None:
    order = np.random.default_rng(3).permutation(EXAMPLES)
    ranks = len(trained)
    done = [order[rank::ranks][: trained[rank]] for rank in range(ranks)]

    left = unread(order, trained)

    assert sorted([*np.concatenate(done), *left]) == list(range(EXAMPLES))


def test_a_plain_loader_is_skipped_by_shares_or_refused() -> None:
    states = [{"epoch": 2, "batches": 3, "loader": None}] * 2
    with pt.local():
        loader = pt.Resumable([torch.tensor(n) for n in range(8)])
        loader.load_state_dicts(states)
        assert (loader.epoch, [int(each) for each in loader]) == (2, [6, 7])
        uneven = [states[0], {**states[0], "batches": 4}]
        with pytest.raises(DataError, match="unequal numbers of batches"):
            loader.load_state_dicts(uneven)


def test_a_loader_with_a_position_of_its_own_is_asked_for_it() -> None:
    class Stateful:
        """Hands out 0 … 5 and goes on where a state says."""

        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Iterator[int]:
            while self.at < 6:
                self.at += 1
                yield self.at - 1
            self.at = 0

        def state_dict(self) -> dict[str, int]:
            return {"at": self.at}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.at = state["at"]

    with pt.local() as session:
        loader, other = pt.Resumable(Stateful()), pt.Resumable(Stateful())
        pt.Embedding(1, "items")
        batches = iter(loader)
        for _ in range(2):
            next(batches)
            session.skip()
        next(batches)  # read, not trained
        other.load_state_dict(loader.state_dict())

        assert list(other) == [2, 3, 4, 5]
        assert other.epoch == 1
