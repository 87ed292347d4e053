"""Cuts of torch jobs on real pservers: saved by all ranks together, resumed by any number."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, PsrtError  # noqa: E402
from psrt.core.specs import Constant, Geo  # noqa: E402
from psrt.pserver.checkpoints import Settings, find_cut  # noqa: E402
from psrt.storage.locate import directory_at  # noqa: E402
from tests.support.live_pservers import LivePserver, live_pservers  # noqa: E402
from tests.support.torch_sessions import TIMEOUT_S, trained  # noqa: E402

EXAMPLES, BATCH, WIDTH, TRAINERS = 48, 4, 2, 2
EVERY_ID = np.arange(EXAMPLES)
MODES = ["sync", "async", "ssp", "half_async", Geo(update_frequency=2)]


@contextlib.contextmanager
def pservers(cuts: Path, resume: str = "") -> Iterator[list[LivePserver]]:
    directory = directory_at(str(cuts))
    resumed = find_cut(directory, resume) if resume else None
    with live_pservers(2, cuts=Settings(directory), resumed=resumed) as started:
        yield started


class Training:
    """A ledger: each trained example adds 1 to its row, and each step 1 to a dense weight."""

    def __init__(self, session: pt.TableSession, place: Path) -> None:
        one, zeros = pt.optim.SGD(1.0), Constant(0.0)
        weight = torch.nn.Linear(1, 1, bias=False)
        weight.weight.data.zero_()
        self.model = torch.nn.ModuleList(
            [
                pt.EmbeddingBag(WIDTH, "rows", "sum", optimizer=one, init=zeros),
                pt.DenseOnServer(weight, one),
            ]
        )
        self.weight = weight
        self.tables = pt.TableOptimizer(self.model, reduce="sum")
        batches = pt.DealtBatches(EXAMPLES, BATCH, seed=1)
        self.loader = pt.Resumable(torch.utils.data.DataLoader(EVERY_ID, batch_sampler=batches))
        self.session, self.place, self.steps = session, str(place), 0
        named = {"model": self.model, "tables": self.tables, "loader": self.loader}
        self.checkpointer = pt.Checkpointer(session, **named)

    def train(self, most: int = EXAMPLES) -> None:
        """Steps until the epoch ends."""
        rows, served = self.model
        for ids, _ in zip(self.loader, range(most), strict=False):
            (-rows(ids[None]).sum() - served(torch.ones(1, 1)).sum()).backward()
            self.tables.step()
            self.tables.zero_grad()
            self.steps += 1

    def counted(self) -> tuple[np.ndarray, float]:
        self.session.flush()
        return self.session.pull({"rows": EVERY_ID})["rows"][:, 0].copy(), self.weight.weight.item()


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("after", [2, 3])
def test_each_example_counts_once_though_the_number_of_ranks_changes(
    tmp_path: Path, mode: Any, after: int
) -> None:
    place, all_done = tmp_path / "cuts", threading.Barrier(after, timeout=TIMEOUT_S)

    def first(session: pt.TableSession, rank: int) -> Any:
        training = Training(session, place)
        training.train(most=2 + (rank if mode != "sync" else 0))
        cut, steps = training.checkpointer.save(training.place), training.steps
        training.train(most=1)  # lost
        return cut, steps

    def second(session: pt.TableSession, rank: int) -> Any:
        training = Training(session, place)
        cut = training.checkpointer.load(training.place)
        training.train()
        session.flush()
        all_done.wait()
        return cut, training.steps, *training.counted()

    with pservers(place) as started:
        before = trained(started, mode, first)
    with pservers(place, "1") as started:
        found = trained(started, mode, second, trainers=after)

    assert {cut for cut, *_ in (*before, *found)} == {1}
    steps = sum(each[1] for each in (*before, *found))
    for _, _, rows, weight in found:
        assert set(rows.tolist()) == {1.0}
        assert weight == steps


def test_pservers_that_begin_anew_load_nothing_and_another_run_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"

    def save(place: Path) -> Any:
        def body(session: pt.TableSession, rank: int) -> int:
            training = Training(session, place)
            assert training.checkpointer.load(str(place)) == 0
            training.train(most=1)
            return training.checkpointer.save(str(place))

        return body

    for place in (one, other):
        with pservers(place) as started:
            assert trained(started, "sync", save(place), trainers=1) == [1]

    def load_other(session: pt.TableSession, rank: int) -> None:
        Training(session, one).checkpointer.load(str(other))

    with pservers(one, "1") as started, pytest.raises(ConfigError, match="are of run"):
        trained(started, "sync", load_other, trainers=1)


def test_a_cut_that_a_rank_cannot_write_is_no_torch_part_and_training_goes_on(
    tmp_path: Path,
) -> None:
    class Broken:
        def state_dict(self) -> dict[str, Any]:
            raise RuntimeError("no state today")

        def load_state_dict(self, state: Any) -> None: ...

    def body(session: pt.TableSession, rank: int) -> str:
        training = Training(session, tmp_path)
        training.train(most=1)
        objects = {"broken": Broken()} if rank else {"model": training.model}
        with pytest.raises(PsrtError) as caught:
            pt.Checkpointer(session, **objects).save(str(tmp_path))
        training.train(most=1)
        return caught.value.message

    with pservers(tmp_path) as started:
        messages = trained(started, "sync", body)

    assert all("torch part of cut 1 was not written: no state today" in each for each in messages)
    assert not list(tmp_path.glob("cut-*/torch.json"))


def test_pservers_without_a_directory_make_no_cut() -> None:
    def body(session: pt.TableSession, rank: int) -> None:
        with pytest.raises(ConfigError, match="the pservers write none"):
            Training(session, Path("nowhere")).checkpointer.save("nowhere")
        session.complete()

    with live_pservers(1) as started:
        trained(started, "async", body)
