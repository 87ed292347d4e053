"""A trainer gives up a pserver for good when it has ended, and never because of one slow reply."""

from __future__ import annotations

from psrt.rpc.deposal import CLOSED_S, SILENT_S, Deposal


def test_connections_that_stay_closed_depose_a_pserver() -> None:
    deposal = Deposal()
    deposal.failed(0.0, is_closed=True)
    assert not deposal.is_deposed

    deposal.failed(CLOSED_S, is_closed=True)

    assert deposal.is_deposed


def test_a_reply_in_between_ends_the_doubt() -> None:
    deposal = Deposal()
    deposal.failed(10.0, is_closed=True)
    deposal.answered()

    deposal.failed(10.0 + CLOSED_S, is_closed=True)

    assert not deposal.is_deposed


def test_silence_takes_longer_than_a_closed_connection() -> None:
    deposal = Deposal()
    for seconds in range(int(SILENT_S)):
        deposal.failed(float(seconds), is_closed=False)
    assert not deposal.is_deposed

    deposal.failed(SILENT_S, is_closed=False)

    assert deposal.is_deposed


def test_a_pserver_that_nobody_can_replace_is_used_again() -> None:
    deposal = Deposal()
    deposal.fenced(0)

    deposal.withdrawn()
    deposal.failed(20.0, is_closed=True)

    assert not deposal.is_deposed
    assert deposal.epoch == 0


def test_no_reply_reinstates_a_deposed_pserver() -> None:
    deposal = Deposal()
    deposal.fenced(0)

    deposal.answered()

    assert deposal.is_deposed


def test_a_served_epoch_ends_a_deposal_and_an_older_one_does_not() -> None:
    deposal = Deposal()
    deposal.fenced(0)

    assert deposal.served(2)
    assert not deposal.is_deposed
    assert not deposal.served(1)
    assert not deposal.served(2)
    assert deposal.epoch == 2


def test_a_deposal_of_a_former_epoch_changes_nothing() -> None:
    deposal = Deposal()
    deposal.served(1)

    deposal.fenced(0)

    assert not deposal.is_deposed
