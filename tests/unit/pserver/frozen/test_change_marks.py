"""Changes are pending until the freeze that has them is confirmed."""

from __future__ import annotations

import numpy as np

from psrt.pserver.frozen.change_marks import ChangeMarks


def marks_of(*numbers: int) -> ChangeMarks:
    marks = ChangeMarks()
    marks.follow()
    mark(marks, *numbers)
    return marks


def mark(marks: ChangeMarks, *numbers: int) -> None:
    marks.mark(np.array(numbers, np.int32), 100)


def numbers_in(bits: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()


def test_a_freeze_has_the_changes_since_the_one_that_is_confirmed() -> None:
    marks = marks_of(3, 99)
    marks.drop(np.array([7]))
    bits, dropped = marks.freeze()
    marks.confirm(bits)
    mark(marks, 5)

    later, later_dropped = marks.freeze()

    assert (numbers_in(bits), dropped.tolist()) == ([3, 99], [7])
    assert (numbers_in(later), later_dropped.tolist()) == ([5], [])


def test_changes_that_are_not_confirmed_are_in_the_next_freeze_too() -> None:
    marks = marks_of(3)
    marks.drop(np.array([7]))
    marks.freeze()
    mark(marks, 5)
    marks.drop(np.array([8]))

    bits, dropped = marks.freeze()

    assert (numbers_in(bits), dropped.tolist()) == ([3, 5], [7, 8])


def test_a_late_confirmation_does_not_confirm_a_later_freeze() -> None:
    marks = marks_of(3)
    early, _ = marks.freeze()
    mark(marks, 5)
    marks.freeze()

    marks.confirm(early)

    assert numbers_in(marks.freeze()[0]) == [3, 5]


def test_changes_after_a_freeze_are_not_in_it() -> None:
    marks = marks_of(3)
    bits, _ = marks.freeze()

    mark(marks, 4, -1)
    marks.mark_all(100)

    assert numbers_in(bits) == [3]
    assert len(numbers_in(marks.freeze()[0])) >= 100


def test_each_consumer_gets_all_changes_since_its_own_last_freeze() -> None:
    marks = ChangeMarks()
    marks.follow("cuts")
    marks.follow("backup")
    mark(marks, 3)
    marks.drop(np.array([7]))
    of_backup, dropped = marks.freeze("backup")
    marks.confirm(of_backup, "backup")
    mark(marks, 5)

    of_cuts, dropped_of_cuts = marks.freeze("cuts")
    later, later_dropped = marks.freeze("backup")

    assert (numbers_in(of_backup), dropped.tolist()) == ([3], [7])
    assert (numbers_in(of_cuts), dropped_of_cuts.tolist()) == ([3, 5], [7])
    assert (numbers_in(later), later_dropped.tolist()) == ([5], [])


def test_a_consumer_that_follows_late_gets_later_changes_only() -> None:
    marks = marks_of(3)
    marks.follow("backup")
    mark(marks, 5)

    assert numbers_in(marks.freeze("backup")[0]) == [5]
    assert numbers_in(marks.freeze()[0]) == [3, 5]
