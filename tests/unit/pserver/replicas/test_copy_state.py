"""A copy is made of the pieces of one process."""

from __future__ import annotations

from psrt.pserver.replicas.copy_state import Answer, CopyState, Piece

FIRST, SECOND = 7, 8
"""Incarnations of a home, and of the process that was started in its place."""


def whole(incarnation: int, number: int, is_last: bool = False) -> Piece:
    return Piece(0, incarnation, 1, number, is_last, is_whole=True)


def test_a_tick_that_was_cut_short_is_not_continued_by_another_process() -> None:
    copy = CopyState()
    assert copy.offered(whole(FIRST, 0)) is Answer.KEEP

    assert copy.offered(whole(SECOND, 1, is_last=True)) is Answer.BEGIN_ANEW
    assert copy.offered(whole(SECOND, 0)) is Answer.KEEP
    assert copy.offered(whole(SECOND, 1, is_last=True)) is Answer.APPLY


def test_the_end_of_a_tick_may_be_asked_for_again() -> None:
    """By a pserver that is idle: another process would have no copy."""
    copy, probe = CopyState(), Piece(0, FIRST, 1, 0, is_last=True, is_whole=False)
    copy.offered(whole(FIRST, 0, is_last=True))
    copy.applied(1)

    assert copy.offered(probe) is Answer.REPEATED
    assert CopyState().offered(probe) is Answer.BEGIN_ANEW
