"""The position of a loader as of the last batch that was trained.

A loader hands out batches before they are trained, and workers read further ahead. A position that
counts what was read would leave the batches between out after a restart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psrt.core.errors import DataError
from psrt.torch.saving.dealt_batches import Deals, DealtBatches
from psrt.torch.session import TableSession, current

State = dict[str, Any]


class Resumable:
    """`loader`, whose `state_dict` is where to go on after the last `TableOptimizer.step`.

    Iterate over it in place of the loader: a pass has the batches of one `epoch`, and after
    `load_state_dict` those behind the trained ones. A loader with `state_dict` and
    `load_state_dict`, as torchdata's StatefulDataLoader, is asked for its own position; of any
    other that many batches are read and dropped, so it must hand out the same ones in each process.
    `batches` are those of the loader if it is wrapped. Samplers get `set_epoch` before each pass.
    Raises `JobError`, here or on the first lookup, in a process that takes the place of one that
    has trained in the running job.
    """

    def __init__(
        self,
        loader: Any,
        *,
        batches: DealtBatches | None = None,
        session: TableSession | None = None,
    ) -> None:
        self._loader, self._session = loader, session or current()
        sampler = getattr(loader, "batch_sampler", None)
        self._dealt = batches or (sampler if isinstance(sampler, DealtBatches) else None)
        self._has_state = hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")
        self.epoch = self._skipped = self._handed = 0
        self._states: dict[int, Any] = {}
        self._trained: State = {"epoch": 0, "batches": 0, "loader": None}
        self._session.on_step(self._stepped)
        self._session.counts_batches()

    def __iter__(self) -> Iterator[Any]:
        self._set_epoch()
        self._handed, self._skipped = self._skipped, 0
        for batch in itertools.islice(self._loader, self._unread_from, None):
            self._handed += 1
            if self._has_state:
                self._states[self._handed] = self._loader.state_dict()
            yield batch
        self._end_pass()

    def __len__(self) -> int:
        """Batches of a whole pass."""
        return len(self._loader)

    def state_dict(self) -> State:
        """The epoch, the trained batches in it, and the loader's own position behind them."""
        state = dict(self._trained)
        if self._dealt is not None:
            deals, epoch = self._dealt.deals, state["epoch"]
            state["deals"] = deals.get(epoch, [])
            state["later"] = {each: deals[each] for each in deals if each > epoch}
            state["examples"] = state["batches"] * self._dealt.batch_size
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on behind the trained batches of a state of this rank, among as many ranks."""
        self._go_on(int(state["epoch"]), int(state["batches"]), state["loader"])
        if self._dealt is not None:
            self._dealt.go_on(self.epoch, _deals_of([state]))

    def load_state_dicts(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Go on behind what all former ranks have trained, with any number of them.

        `DealtBatches` deals the unread indices anew. With any other loader and another number of
        ranks, each skips its share of the trained batches: raises `DataError` if they are not equal
        on all former ranks, or have no equal shares.
        """
        ranks, rank = self._session.backend.trainers, self._session.backend.trainer_id
        if self._dealt is not None:
            self._deal(self._dealt, states)
        elif len(states) == ranks:
            self.load_state_dict(states[rank])
        else:
            epoch, batches = _equal(states)
            share, rest = divmod(batches * len(states), ranks)
            if rest:
                raise _no_shares(f"{batches} batches of {len(states)} ranks", ranks)
            self._go_on(epoch, share, None)

    @property
    def _unread_from(self) -> int:
        """Batches that the loader hands out again and were trained."""
        return 0 if self._has_state else self._handed

    def _deal(self, dealt: DealtBatches, states: Sequence[Mapping[str, Any]]) -> None:
        """Deal the rest of the earliest epoch of all, and of those that other ranks have begun."""
        epochs = [int(each["epoch"]) for each in states]
        deals = _deals_of(states)
        for epoch in range(min(epochs), max(epochs) + 1):
            deals[epoch] = [*deals.get(epoch, []), [_trained_in(epoch, each) for each in states]]
        dealt.go_on(min(epochs), deals)
        self._go_on(min(epochs), 0, None)

    def _go_on(self, epoch: int, batches: int, loader: Any) -> None:
        self.epoch, self._skipped = epoch, batches
        self._trained = {"epoch": epoch, "batches": batches, "loader": loader}
        if self._has_state and loader is not None:
            self._loader.load_state_dict(loader)

    def _set_epoch(self) -> None:
        for name in ("sampler", "batch_sampler"):
            sampler: Any = getattr(self._loader, name, None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(self.epoch)
        if self._dealt is not None:
            self._dealt.set_epoch(self.epoch)

    def _stepped(self) -> None:
        """Record that all batches that were handed out are trained."""
        if self._handed:
            state = self._states.get(self._handed)
            self._trained = {"epoch": self.epoch, "batches": self._handed, "loader": state}
            self._states.clear()

    def _end_pass(self) -> None:
        trained = self._trained["epoch"], self._trained["batches"]
        is_trained = trained == (self.epoch, self._handed)
        self.epoch, self._handed = self.epoch + 1, 0
        self._states.clear()
        if is_trained:
            self._trained = {"epoch": self.epoch, "batches": 0, "loader": None}


def _deals_of(states: Sequence[Mapping[str, Any]]) -> dict[int, Deals]:
    """All deals by epoch, of which each rank has those from its own epoch on; equal ones."""
    found: dict[int, Deals] = {}
    for state in states:
        found |= {int(state["epoch"]): state["deals"], **state.get("later", {})}
    return found


def _trained_in(epoch: int, state: Mapping[str, Any]) -> int:
    """The examples of an epoch that a rank has trained; many = its whole share."""
    if int(state["epoch"]) == epoch:
        return int(state["examples"])
    return 0 if int(state["epoch"]) < epoch else 1 << 62


def _equal(states: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The epoch and the batches that all ranks have trained."""
    places = {(int(each["epoch"]), int(each["batches"])) for each in states}
    if len(places) > 1:
        raise _no_shares("ranks that have trained unequal numbers of batches", len(states))
    return places.pop()


def _no_shares(what: str, ranks: int) -> DataError:
    return DataError(
        f"the positions of {what} have no equal shares among {ranks} ranks; nothing was loaded.",
        hint="Give the DataLoader a batch_sampler of pt.DealtBatches, go on with the former number "
        "of ranks, or begin the epoch anew.",
    )
