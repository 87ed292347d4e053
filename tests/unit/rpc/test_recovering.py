"""A client that meets another process of its pserver."""

from __future__ import annotations

import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError
from psrt.rpc.dialing import dialer
from psrt.rpc.recovering import Recovering
from psrt.rpc.route import Route

ROUTE = Route("ps:1", lambda endpoint: dialer("stream", endpoint, 0))


def test_a_trainer_that_joins_a_durable_job_goes_on_and_sends_again_once_it_can() -> None:
    recovering, sent = Recovering(ROUTE, is_durable=True), list[int]()
    recovering.met(tables=5, process=1)
    recovering.met(tables=5, process=2)  # killed between HELLO and REGISTER
    assert not recovering.is_due

    recovering.send_again = lambda: sent.append(2)
    assert recovering.is_due
    recovering.run(1.0)

    assert sent == [2]
    assert not recovering.is_due


@pytest.mark.parametrize("is_durable", [False, True])
def test_other_tables_are_refused(is_durable: bool) -> None:
    recovering = Recovering(ROUTE, is_durable)
    recovering.met(tables=5, process=1)

    with pytest.raises(JobError, match="the parameters it held are lost"):
        recovering.met(tables=6, process=2)


def test_another_process_is_refused_in_a_job_that_is_not_durable() -> None:
    recovering = Recovering(ROUTE)
    recovering.met(tables=5, process=1)

    with pytest.raises(JobError, match="the parameters it held are lost"):
        recovering.met(tables=5, process=2)


class FailsOver:
    """A `Failover` of a trainer that has joined, or joins."""

    is_deposed = False

    def __init__(self, has_begun: bool) -> None:
        self.has_begun = has_begun

    def answered(self) -> None:
        pass

    def failed(self, error: PsrtError, epoch: int) -> bool:
        return False


@pytest.mark.parametrize("has_joined", [True, False])
def test_with_backups_other_tables_are_no_loss(has_joined: bool) -> None:
    """A trainer that has joined deposes their pserver, and one that joins has lost nothing."""
    route = Route("ps:1", lambda endpoint: dialer("stream", endpoint, 0))
    route.failover = FailsOver(has_joined)
    recovering = Recovering(route, is_durable=True)
    recovering.met(tables=5, process=1)

    with pytest.raises(UnavailableError) as refused:
        recovering.met(tables=6, process=2)

    assert refused.value.code is (ErrorCode.FENCED if has_joined else ErrorCode.TAKING_OVER)
    recovering.forget()
    recovering.met(tables=6, process=2)
    assert not recovering.is_due


class HeldLock:
    """A lock that another thread holds for some waits, and gets a reply in each but the last."""

    def __init__(self, recovering: Recovering, waits: int, is_given: bool) -> None:
        self._recovering, self._left, self._is_given = recovering, waits, is_given
        self.timeouts: list[float] = []

    def acquire(self, timeout: float) -> bool:
        self.timeouts.append(timeout)
        self._left -= 1
        self._recovering.advances += self._left > 0
        return self._left < 1 and self._is_given

    def release(self) -> None:
        pass


@pytest.mark.parametrize("is_given", [True, False])
def test_a_call_waits_for_another_thread_that_sends_again_while_that_gets_replies(
    is_given: bool,
) -> None:
    recovering, sent = Recovering(ROUTE, is_durable=True), list[int]()
    recovering.send_again = lambda: sent.append(2)
    recovering.met(tables=5, process=1)
    recovering.met(tables=5, process=2)
    lock = HeldLock(recovering, 3, is_given)
    recovering._lock = lock  # type: ignore[assignment]

    if is_given:
        recovering.run(0.5)
    else:
        with pytest.raises(UnavailableError, match=r"did not recover in 0\.5 s") as caught:
            recovering.run(0.5)
        assert caught.value.code is ErrorCode.RECOVERING

    assert lock.timeouts == [0.5, 0.5, 0.5]
    assert sent == ([2] if is_given else [])
