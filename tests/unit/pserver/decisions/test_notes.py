"""Notes of a meeting: who reads what, when a reply was lost, and what is forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from psrt.core import specs
from psrt.core.errors import WireError
from psrt.pserver.decisions.notes import MAX_NOTE_BYTES, Notes
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.pserver import CALL_TIMEOUT_S, inproc_pserver


def meet(client: Client, time: int, note: str, awaited: int | None = None) -> list[str]:
    met = pb.Meet(clock="c", reached=time, awaited=time if awaited is None else awaited, note=note)
    reply = client.call(Method.MEET, header=pb.Header(meet=met), timeout_s=CALL_TIMEOUT_S)
    return list(reply.header.meet_reply.notes)


def test_notes_are_read_by_trainer_and_time_and_a_silent_one_is_empty() -> None:
    notes = Notes()
    notes.write("c", 2, 1, "two")
    notes.write("c", 0, 1, "zero")
    notes.write("other", 1, 1, "elsewhere")

    assert notes.written("c", 1, 3) == ["zero", "", "two"]
    assert notes.written("c", 2, 3) == []
    assert notes.written("nowhere", 1, 3) == []


def test_the_notes_of_a_trainer_s_two_latest_times_are_kept_in_whatever_order_they_come() -> None:
    notes = Notes()
    for time in (1, 3, 2):
        notes.write("c", 0, time, f"at {time}")
    notes.write("c", 0, 1, "a late repetition")

    assert [notes.written("c", time, 1) for time in (1, 2, 3)] == [[], ["at 2"], ["at 3"]]


def test_a_note_without_words_does_not_wipe_one_out() -> None:
    notes = Notes()
    notes.write("c", 0, 1, "first")
    notes.write("c", 0, 1, "")

    assert notes.written("c", 1, 1) == ["first"]


def test_a_note_that_is_too_long_is_refused() -> None:
    with pytest.raises(WireError, match=r"trainer 0 brought a note of 65,537 bytes to clock 'c'"):
        Notes().write("c", 0, 1, "x" * (MAX_NOTE_BYTES + 1))


def test_all_who_meet_read_what_all_wrote_also_when_one_is_a_meeting_further() -> None:
    with inproc_pserver(trainers=2, mode=specs.Async()) as pserver, ThreadPoolExecutor(2) as pool:
        one, two = pserver.join(0), pserver.join(1)
        first = pool.submit(meet, one, 1, "a1")
        assert meet(two, 1, "b1") == ["a1", "b1"]
        second = pool.submit(meet, two, 2, "b2")

        repeated = meet(one, 1, "a1")

        assert first.result(60.0) == repeated == ["a1", "b1"]
        assert meet(one, 2, "a2") == second.result(60.0) == ["a2", "b2"]


def test_who_meets_without_notes_gets_none() -> None:
    with inproc_pserver(trainers=2, mode=specs.Ssp()) as pserver:
        assert meet(pserver.join(0), 1, "", awaited=0) == []
