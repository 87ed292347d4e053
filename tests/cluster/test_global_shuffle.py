"""Global shuffle between trainers on threads: they meet at a pserver and send over sockets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import DeadlineError, JobError, PsrtError, UnavailableError, WireError
from psrt.data.datasets.records import Layout, Records
from psrt.data.datasets.scattering import Scattering
from psrt.data.slots import Slot
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.trainer.shuffle.inbox import Inbox
from psrt.trainer.shuffle.shuffle import Seat, exchange
from psrt.trainer.shuffle.tally import Word
from tests.support.live_pservers import free_port
from tests.support.pserver import InprocPserver, inproc_pserver
from tests.support.records import DENSE, RAGGED, TEXT, pieces_of, plain

SIZES = ([120, 3, 60], [77], [0, 200])
PATIENCE_S = 20.0


class Meetings:
    """Stands for a cluster's `tell`, without a cluster."""

    def __init__(self, client: Client) -> None:
        self._client, self._times = client, 0

    def __call__(self, note: str, timeout_s: float, waits: bool = True) -> Sequence[str]:
        self._times += 1
        awaited = self._times if waits else 0
        met = pb.Meet(clock="shuffle", reached=self._times, awaited=awaited, note=note)
        reply = self._client.call(Method.MEET, header=pb.Header(meet=met), timeout_s=timeout_s)
        return list(reply.header.meet_reply.notes)


class Trainers:
    """`shuffle` runs on one thread for each trainer; `meetings` are for those who misbehave."""

    def __init__(self, pserver: InprocPserver) -> None:
        self._count = pserver.trainers
        self.meetings = [Meetings(pserver.join(trainer)) for trainer in range(self._count)]

    def shuffle(
        self,
        *slots: tuple[Slot, ...],
        who: Sequence[int] | None = None,
        carrier: Literal["stream", "grpc"] = "stream",
        by: str = "",
        timeout_s: float = PATIENCE_S,
    ) -> list[list[tuple[object, ...]] | PsrtError]:
        """The records of each trainer after the shuffle, or its error."""

        slots_of = (slots or (RAGGED,)) * (1 if len(slots) > 1 else self._count)

        def run(trainer: int) -> list[tuple[object, ...]] | PsrtError:
            seat = Seat(trainer, self._count, "job", carrier, timeout_s=timeout_s)
            try:
                after = exchange(
                    dealt(trainer, slots_of[trainer], by), seat, self.meetings[trainer]
                )
            except PsrtError as error:
                return error
            return [row for piece in after for row in plain(piece)]

        with ThreadPoolExecutor(self._count) as pool:
            return list(pool.map(run, range(self._count) if who is None else who))


def dealt(trainer: int, slots: tuple[Slot, ...], by: str = "") -> Scattering:
    layout = Layout(slots)
    pieces = pieces_of(layout, SIZES[trainer], trainer, bool(by))
    return Scattering(layout, pieces, (TEXT,) if by else (), 32, seed=9, by=by)


def all_rows(trainers: int, slots: tuple[Slot, ...], by: str = "") -> Counter[object]:
    pieces = [p for trainer in range(trainers) for p in dealt(trainer, slots, by).pieces]
    return Counter(row for piece in pieces for row in plain(piece))


@pytest.fixture
def make_trainers() -> Iterator[Callable[[int], Trainers]]:
    with inproc_pserver(trainers=3, mode=specs.Async(), wait_timeout_s=60.0) as pserver:

        def make(count: int) -> Trainers:
            pserver.trainers = count
            return Trainers(pserver)

        yield make


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
@pytest.mark.parametrize(("trainers", "slots"), [(1, RAGGED), (2, DENSE), (3, RAGGED)])
def test_every_record_is_at_one_trainer_once(
    make_trainers: Callable[[int], Trainers],
    carrier: Literal["stream", "grpc"],
    trainers: int,
    slots: tuple[Slot, ...],
) -> None:
    after = make_trainers(trainers).shuffle(slots, carrier=carrier)

    rows = [row for found in after if isinstance(found, list) for row in found]
    assert [error for error in after if isinstance(error, PsrtError)] == []
    assert Counter(rows) == all_rows(trainers, slots)
    assert all(found for found in after)


def test_the_same_seeds_give_the_same_records_in_the_same_order_again(
    make_trainers: Callable[[int], Trainers],
) -> None:
    trainers = make_trainers(3)

    assert trainers.shuffle() == trainers.shuffle(carrier="grpc")


def test_records_with_one_line_id_meet(make_trainers: Callable[[int], Trainers]) -> None:
    after = make_trainers(2).shuffle(by=TEXT)

    one, two = (Counter(found) for found in after if isinstance(found, list))
    assert one + two == all_rows(2, RAGGED, TEXT)
    assert min(len(one), len(two)) > 0
    assert not {row[-1] for row in one} & {row[-1] for row in two}


def test_trainers_with_other_slots_refuse_each_other(
    make_trainers: Callable[[int], Trainers],
) -> None:
    errors = make_trainers(2).shuffle(RAGGED, DENSE)

    assert all(isinstance(error, WireError | JobError) for error in errors)
    assert all("shuffles records of another kind" in str(error) for error in errors)


def test_who_never_comes_is_named(make_trainers: Callable[[int], Trainers]) -> None:
    errors = make_trainers(3).shuffle(who=[0, 1], timeout_s=0.5)

    for error in errors:
        assert isinstance(error, DeadlineError)
        assert "clock 'shuffle' for trainer 2" in error.message


def test_who_dies_while_records_are_sent_is_named_by_all(
    make_trainers: Callable[[int], Trainers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psrt.trainer.shuffle.shuffle.GIVE_UP_S", 0.2)
    trainers = make_trainers(3)
    kind = dealt(2, RAGGED).digest()
    gone = Word(f"127.0.0.1:{free_port()}", kind).note()
    trainers.meetings[2](gone, PATIENCE_S, waits=False)

    errors = trainers.shuffle(who=[0, 1], timeout_s=2.0)

    for error in errors:
        assert isinstance(error, UnavailableError | JobError)
        assert "could not hand records to trainer 2 at 127.0.0.1" in error.message


def test_who_dies_after_it_has_taken_records_is_named(
    make_trainers: Callable[[int], Trainers],
) -> None:
    trainers = make_trainers(2)
    with ThreadPoolExecutor(1) as pool:
        survivor = pool.submit(partial(trainers.shuffle, who=[0], timeout_s=2.0))
        dies = _DiesAfterSending(trainers.meetings[1])
        with pytest.raises(KeyboardInterrupt):
            exchange(dealt(1, RAGGED), Seat(1, 2, "job", timeout_s=PATIENCE_S), dies)
        (error,) = survivor.result(60.0)

    assert isinstance(error, DeadlineError | UnavailableError)
    assert "trainer 1" in error.message


class _DiesAfterSending:
    """Meets once."""

    def __init__(self, meetings: Meetings) -> None:
        self._meetings, self._met = meetings, 0

    def __call__(self, note: str, timeout_s: float, waits: bool = True) -> Sequence[str]:
        self._met += 1
        if self._met > 1:
            raise KeyboardInterrupt
        return self._meetings(note, timeout_s, waits)


def test_a_record_that_gets_lost_is_told_by_all_trainers(
    make_trainers: Callable[[int], Trainers], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Leaky(Inbox):
        def keep(self, trainer: int, records: Records) -> None:
            if trainer == 1 and not self.counts[1]:
                records = records.take(np.arange(len(records) - 1))
            super().keep(trainer, records)

    monkeypatch.setattr("psrt.trainer.shuffle.shuffle.Inbox", Leaky)

    errors = make_trainers(2).shuffle()

    for error in errors:
        assert isinstance(error, JobError)
        assert "there were 260 records before and are 259 after: trainer 1 lacks 1 of" in str(error)
