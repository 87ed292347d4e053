"""The state of a Geo trainer in a cut: copies as pages, and trainers restored from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from psrt.communicator.geo import GeoTable, UpdateState
from psrt.communicator.geo.geo_dense import GeoDense
from psrt.communicator.geo.geo_state import Counts, RestoredState, copied_state
from psrt.communicator.requests import StatePage
from psrt.core import specs
from psrt.core.errors import ConfigError
from psrt.core.types import F32
from tests.support.geo import TABLE, WIDTH, OwnByHand

SHAPE = (7, 3)
COUNTS = Counts(own_steps=40, other_steps=38, uncounted_steps=2)
LINES = 100  # bytes of a page: two rows, or eight numbers of `w`


class Trainer:
    """One dense parameter `w` with a vector of state, and the table `emb`."""

    def __init__(self, spec: specs.SparseTableSpec = TABLE) -> None:
        self.own = OwnByHand(spec)
        self.dense = GeoDense(self.own.dense)

    @property
    def table(self) -> GeoTable:
        return self.own.tables["emb"]

    def begin(self, agreed: F32, state: RestoredState | None = None) -> None:
        self.own.arrays["w"] = agreed.copy()
        self.dense.begin(self.own.arrays, {} if state is None else state.dense)

    def train(self, seed: int, ids: list[int]) -> None:
        rng = np.random.default_rng(seed)
        self.own.arrays["w"] -= rng.normal(size=SHAPE).astype(np.float32)
        gradients = rng.normal(size=(len(ids), WIDTH)).astype(np.float32)
        self.table.apply(np.array(ids, np.int64), gradients)

    def pages(self) -> list[StatePage]:
        return copied_state(self.own, self.dense, COUNTS, LINES)

    def restored_from(self, *pages: list[StatePage], me: int = 0) -> RestoredState:
        """Take the pages of trainers me, me + 1, …"""
        state = RestoredState(self.own, {"w": SHAPE}, me, cut=5)
        for trainer, each in enumerate(pages, me):
            for page in each:
                state.take(trainer, page)
        state.finish()
        return state

    def residuals(self) -> tuple[F32, dict[int, list[float]]]:
        """All that is not pushed; it counts as pushed from now on."""
        given = self.table.give(1, all_rows=True)
        rows = dict(zip(given.ids.tolist(), given.values.tolist(), strict=True))
        return self.dense.give(1)[0].get("w", np.zeros(SHAPE, np.float32)), rows


ZEROS = np.zeros(SHAPE, np.float32)


def trained(seed: int, ids: list[int]) -> Trainer:
    """A trainer with rows that are pushed in half, not pushed, and pulled."""
    made = Trainer()
    made.begin(ZEROS)
    made.own.states = {"w": UpdateState(np.arange(21, dtype=np.float32).reshape(1, 21), 40)}
    made.train(seed, ids)
    made.dense.give(2)
    made.table.give(2)
    made.train(seed + 1, ids[1:])
    made.table.take(np.array([901, 902]), np.full((2, WIDTH), 0.25, np.float32))
    return made


def test_a_restored_trainer_has_the_values_residuals_state_and_counts_of_the_copy() -> None:
    before, after = trained(3, [1, -2, 30, 40]), Trainer()
    pages = before.pages()

    state = after.restored_from(pages)
    after.begin(ZEROS + before.dense.kept("w").old, state)

    assert state.counts == COUNTS
    assert after.table.updates == before.table.updates == 2
    np.testing.assert_array_equal(after.own.states["w"].values, before.own.states["w"].values)
    assert after.own.states["w"].steps == 40
    np.testing.assert_array_equal(after.own.arrays["w"], before.own.arrays["w"])
    ids = np.array([1, -2, 30, 40], np.int64)
    np.testing.assert_array_equal(after.table.read(ids), before.table.read(ids))
    touched = after.table.give(2).ids.tolist()
    assert sorted(touched) == sorted(before.table.give(2).ids.tolist()) == [-2, 30, 40]
    for mine, theirs in zip(after.residuals(), before.residuals(), strict=True):
        np.testing.assert_equal(mine, theirs)


def test_rows_that_only_others_trained_are_not_in_the_copy() -> None:
    pages = trained(3, [1, -2, 30]).pages()
    rows = [page.arrays["rows"] for page in pages if page.meta["kind"] == "rows"]

    assert len(rows) > 1
    assert sum(map(len, rows)) == 3


def test_a_copy_does_not_change_with_its_trainer() -> None:
    trainer = trained(3, [1, -2])
    pages = trainer.pages()
    before = [{name: each.copy() for name, each in page.arrays.items()} for page in pages]

    trainer.train(9, [1, -2])

    for page, arrays in zip(pages, before, strict=True):
        np.testing.assert_equal(page.arrays, arrays)


def test_changes_that_others_pushed_before_the_cut_come_with_the_first_pull() -> None:
    before, after = trained(3, [1, 2]), Trainer()
    state = after.restored_from(before.pages())
    old = before.dense.kept("w").old

    after.begin(old + np.float32(2.0), state)

    own = before.own.arrays["w"]
    np.testing.assert_array_equal(after.own.arrays["w"], own + ((old + np.float32(2.0)) - old))


@pytest.mark.parametrize("has_own", [True, False])
def test_the_residuals_of_a_trainer_that_is_not_resumed_are_adopted(has_own: bool) -> None:
    mine, other, after = trained(3, [1, 2]), trained(8, [2, 3]), Trainer()
    mine_pages = mine.pages() if has_own else []
    state = after.restored_from(mine_pages, other.pages())
    after.begin(ZEROS, state)

    dense, rows = after.residuals()

    expected = [each.residuals() for each in ([mine, other] if has_own else [other])]
    np.testing.assert_allclose(dense, sum(each[0] for each in expected), rtol=1e-5, atol=1e-6)
    assert rows.keys() == {row for each in expected for row in each[1]}
    for row, values in rows.items():
        total = sum(np.array(each[1].get(row, [0.0] * WIDTH)) for each in expected)
        np.testing.assert_allclose(values, total, rtol=1e-5, atol=1e-6)


def test_steps_that_were_not_counted_are_counted_by_the_trainer_that_adopts() -> None:
    after = Trainer()
    state = after.restored_from(trained(3, [1]).pages(), trained(4, [1]).pages())

    assert state.counts == COUNTS._replace(uncounted_steps=4)
    assert after.own.states["w"].steps == 40


def test_another_optimizer_is_refused_by_name() -> None:
    pages = trained(3, [1]).pages()
    wider = Trainer(replace(TABLE, optimizer=specs.Adagrad()))

    with pytest.raises(ConfigError, match="cut 5 cannot be resumed by trainer 0: the layout of"):
        wider.restored_from(pages)


def test_a_dense_parameter_of_another_size_is_refused_by_name() -> None:
    state = RestoredState(Trainer().own, {"w": (2, 3)}, 0, cut=5)
    pages = trained(3, [1]).pages()

    with pytest.raises(ConfigError, match="of elements of 'w' is 21 in the cut, but 6 in this job"):
        state.take(0, pages[0])
