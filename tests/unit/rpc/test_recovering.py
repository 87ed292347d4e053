"""A client that meets another process of its pserver."""

from __future__ import annotations

import pytest

from psrt.core.errors import JobError
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
