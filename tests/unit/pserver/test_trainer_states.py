"""States of Geo trainers that arrive at a pserver page by page, for its part of a cut."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, JobError, StorageError, WireError
from psrt.pserver.checkpoints import SentPage
from psrt.pserver.checkpoints.trainer_states import TrainerStates
from psrt.pserver.serving.cuts.state_pages import no_state, sent_page, stored_page
from psrt.rpc import pb
from psrt.rpc.wire import Message
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.directory import Directory
from psrt.storage.failures import damaged
from psrt.storage.locate import directory_at
from psrt.storage.seals import Seal

LONG_S = 30.0
FIRST = SentPage(4, 1, 77, 0, False, {"kind": "counts"}, {})
SECOND = replace(FIRST, number=1, is_last=True, arrays={"rows": np.ones((3, 2), np.float32)})
NAME = "cut-00000004/part-0/trainer-1.arrays"


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return directory_at(tmp_path)


@pytest.fixture
def states(directory: Directory) -> TrainerStates:
    """Those of a pserver that waits for process 77 of trainer 1 in cut 4."""
    made = TrainerStates(directory)
    made.expect(4, 0, {1: 77})
    return made


def test_a_state_is_a_file_of_the_part_with_every_page(
    directory: Directory, states: TrainerStates
) -> None:
    with ThreadPoolExecutor(1) as pool:
        collected = pool.submit(states.collect, LONG_S)
        states.put(FIRST)
        assert not collected.done()
        states.put(SECOND)
        (file,) = collected.result(LONG_S)

    assert (file["name"], file["trainer"], file["tables"]) == (NAME, 1, [])
    with directory.read(NAME) as opened:
        first, second = ArrayFileReader(opened, Seal.from_plain(file["seal"]))
    assert (first.meta, first.arrays) == (FIRST.meta, {})
    np.testing.assert_array_equal(second.arrays["rows"], SECOND.arrays["rows"])


def test_a_page_that_arrives_twice_is_written_once(states: TrainerStates) -> None:
    for page in (FIRST, FIRST, SECOND, SECOND, FIRST):
        states.put(page)

    assert len(states.collect(0.0)) == 1


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (SECOND, "page 0 is missing"),
        (replace(FIRST, cut=3), "does not wait for the state"),
        (replace(FIRST, trainer=0), "does not wait for the state"),
        (replace(FIRST, incarnation=78), "does not wait for the state"),
    ],
)
def test_a_page_that_nobody_awaits_is_refused(
    states: TrainerStates, page: SentPage, why: str
) -> None:
    with pytest.raises(JobError, match=why) as found:
        states.put(page)
    assert found.value.code is ErrorCode.CUT_GIVEN_UP


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda states: states.left(1), "trainer 1 left before it had sent its state"),
        (lambda states: states.superseded(5), "cut 5 was proposed before"),
        (lambda states: states.stop(), "shutting down"),
        (lambda states: None, "trainer 1 did not send its state in 0 s"),
    ],
)
def test_a_state_that_does_not_come_ends_the_part_and_leaves_no_file(
    directory: Directory, states: TrainerStates, end: object, why: str
) -> None:
    states.put(FIRST)
    end(states)

    with pytest.raises(JobError, match=why):
        states.collect(0.0)
    with pytest.raises(JobError):
        states.put(SECOND)
    assert directory.names() == []
    assert not list(Path(directory.location).rglob("*.tmp"))


def test_trainers_that_leave_after_their_state_is_there_change_nothing(
    states: TrainerStates,
) -> None:
    states.put(FIRST)
    states.put(SECOND)
    states.left(1)
    states.superseded(4)
    states.stop()

    assert len(states.collect(0.0)) == 1


def test_a_disk_that_refuses_a_page_ends_the_part(
    monkeypatch: pytest.MonkeyPatch, states: TrainerStates
) -> None:
    states.put(FIRST)

    def refuse(*given: object) -> None:
        raise damaged("a disk", "it is full")

    monkeypatch.setattr("psrt.storage.array_writer.ArrayFileWriter.page", refuse)
    with pytest.raises(StorageError, match="it is full"):
        states.put(SECOND)
    with pytest.raises(JobError, match=r"the state of trainer 1: .*it is full"):
        states.collect(0.0)


# --- messages ----------------------------------------------------------------------------------


def keep_state(meta: str, names: list[str], tensors: list[np.ndarray]) -> Message:
    header = pb.Header(trainer=1, state_page=pb.StatePage(cut=4, meta=meta, arrays=names))
    header.push_key.incarnation = 77
    return Message(header, tensors)


def test_a_page_travels_with_its_names() -> None:
    values = np.ones(3, np.float32)
    page = sent_page(keep_state('{"kind": "dense"}', ["train"], [values]))

    assert (page.cut, page.trainer, page.incarnation, page.meta) == (4, 1, 77, {"kind": "dense"})
    assert page.arrays["train"] is values


@pytest.mark.parametrize(
    ("meta", "names", "why"),
    [
        ("{", ["train"], "its meta is not JSON"),
        ("[]", ["train"], "its meta is not a JSON object"),
        ("{}", [], "it has 1 tensors with names"),
        ("{}", ["train", "train"], "it has 1 tensors with names"),
    ],
)
def test_a_malformed_page_is_refused(meta: str, names: list[str], why: str) -> None:
    with pytest.raises(WireError, match=why):
        sent_page(keep_state(meta, names, [np.ones(3, np.float32)]))


def test_a_pserver_that_resumes_nothing_has_no_states() -> None:
    reply = stored_page(None, pb.StatePage(trainer=1))

    assert reply.header == no_state().header
    assert reply.header.state_page.last
    assert json.dumps(reply.header.state_page.meta) == '""'
