"""Handing records to a trainer, over every carrier: stored once, and from whom it knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError, WireError
from psrt.data.datasets.records import Layout, Records
from psrt.data.datasets.scattering import Scattering, tensors_of
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.trainer.shuffle.inbox import Inbox
from tests.support.carriers import CARRIERS, Station
from tests.support.inproc import InprocServer
from tests.support.records import DENSE, RAGGED, pieces_of, plain

LAYOUT = Layout(RAGGED)
TIMEOUT_S = 20.0


def scattering(layout: Layout = LAYOUT) -> Scattering:
    return Scattering(layout, pieces_of(layout, [], 1))


def hello_of(job_id: str = "job", layout: Layout = LAYOUT) -> pb.Hello:
    return pb.Hello(job_id=job_id, plan_hash=scattering(layout).digest(), trainers=3)


def hand_over(client: Client, records: Records) -> None:
    header = pb.Header(push_key=client.next_push_key())
    client.call(Method.RECORDS, header=header, tensors=tensors_of(records, ()), timeout_s=TIMEOUT_S)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(scattering(), 3, "job")


@pytest.fixture(params=CARRIERS)
def station(request: pytest.FixtureRequest, inbox: Inbox) -> Iterator[Station]:
    station = Station(request.param, inbox.handle, greets=True)
    yield station
    station.close()


@pytest.fixture
def near(inbox: Inbox) -> Iterator[Station]:
    station = Station("inproc", inbox.handle, greets=True)
    yield station
    station.close()


def test_records_whose_acknowledgement_is_lost_are_stored_once(
    station: Station, inbox: Inbox
) -> None:
    client = station.client(trainer=2, hello=hello_of())
    pieces = pieces_of(LAYOUT, [20, 30, 1], 4)
    expected = [row for piece in pieces for row in plain(piece)]
    for piece in pieces:
        station.lose_next_reply(Method.RECORDS)
        hand_over(client, piece)

    assert inbox.counts == [0, 0, 51]
    assert [row for piece in inbox.take() for row in plain(piece)] == expected


def test_a_call_that_arrives_twice_is_stored_once(near: Station, inbox: Inbox) -> None:
    (records,) = pieces_of(LAYOUT, [20], 4)
    client = near.client(hello=hello_of())
    client.connect(TIMEOUT_S)
    near.duplicate_next(Method.RECORDS)

    hand_over(client, records)

    assert inbox.counts == [20, 0, 0]


@pytest.mark.parametrize(
    ("hello", "trainer"),
    [(hello_of("another job"), 0), (hello_of(layout=Layout(DENSE)), 0), (hello_of(), 3)],
)
def test_a_trainer_of_another_job_or_with_other_slots_is_refused(
    near: Station, hello: pb.Hello, trainer: int
) -> None:
    with pytest.raises(WireError, match="shuffles records of another kind") as caught:
        near.client(trainer=trainer, hello=hello).connect(TIMEOUT_S)

    assert caught.value.code is ErrorCode.JOB_MISMATCH


def test_a_process_that_takes_a_sender_s_place_is_refused(inbox: Inbox, near: Station) -> None:
    (records,) = pieces_of(LAYOUT, [20], 4)
    hand_over(near.client(hello=hello_of()), records)
    again = Client("inproc", 0, 4321, InprocServer(inbox.handle), hello_of())

    with pytest.raises(JobError, match="trainer 0 came back as a new process") as caught:
        hand_over(again, records)

    assert caught.value.code is ErrorCode.TRAINER_LOST
    assert inbox.counts == [20, 0, 0]


def test_a_gap_between_batches_is_refused(near: Station, inbox: Inbox) -> None:
    (records,) = pieces_of(LAYOUT, [20], 4)
    client = near.client(hello=hello_of())
    client.next_push_key()

    with pytest.raises(WireError, match="handed over batch 2 of records after batch 0"):
        hand_over(client, records)

    assert inbox.counts == [0, 0, 0]


def test_other_calls_are_refused(near: Station) -> None:
    client = near.client(hello=hello_of())

    with pytest.raises(PsrtError, match="has no method 3"):
        client.call(Method.PULL, timeout_s=TIMEOUT_S)
