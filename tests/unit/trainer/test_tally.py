"""Checks of a global shuffle by the counts and words of its trainers."""

from __future__ import annotations

import pytest

from psrt.core.errors import JobError, WireError
from psrt.trainer.shuffle.tally import Word, check, check_kinds, words_of


def test_equal_counts_are_accepted() -> None:
    check([3, 2], [[1, 2], [0, 2]], [[1, 0], [2, 2]])


def test_missing_and_surplus_records_are_named_by_sender_and_receiver() -> None:
    with pytest.raises(JobError) as caught:
        check([5, 4], [[2, 3], [4, 0]], [[2, 5], [1, 0]])

    assert caught.value.message == (
        "global shuffle: there were 9 records before and are 8 after: "
        "trainer 0 has 1 records more than the 4 trainer 1 sent it; "
        "trainer 1 lacks 2 of the 3 records trainer 0 sent it. The shuffled records were given up."
    )


def test_a_record_that_was_never_handed_over_is_told() -> None:
    with pytest.raises(JobError, match="trainer 0 had 6 records and handed over 5"):
        check([6, 0], [[2, 3], [0, 0]], [[2, 0], [3, 0]])


def test_words_travel_as_notes() -> None:
    words = [Word(endpoint="h:1"), Word(before=3, counts=[1, 2])]

    assert words_of([word.note() for word in words], 2) == words


def test_a_trainer_without_a_word_and_one_that_gave_up_are_named() -> None:
    with pytest.raises(JobError, match="trainer 1, 2 takes no part"):
        words_of([Word(endpoint="h:1").note(), ""], 3)
    with pytest.raises(JobError, match="trainer 1 has given up: no memory"):
        words_of([Word(endpoint="h:1").note(), Word(failed="no memory").note()], 2)


@pytest.mark.parametrize("note", ["{", "[]", '{"unknown": 1}'])
def test_a_note_of_a_stranger_is_refused(note: str) -> None:
    with pytest.raises(WireError, match="trainer 0 sent"):
        words_of([note], 1)


def test_all_trainers_must_shuffle_records_of_one_kind() -> None:
    check_kinds(["a", "a", "a"])

    with pytest.raises(JobError, match="trainer 2 shuffles records of another kind than trainer 0"):
        check_kinds(["a", "a", "b"])
