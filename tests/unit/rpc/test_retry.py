"""The retry policy, which is arithmetic."""

from __future__ import annotations

import pytest

from psrt.core.errors import DeadlineError, ErrorCode, PsrtError, TableError, UnavailableError
from psrt.rpc.methods import METHODS, Method
from psrt.rpc.pb.psrt.v1 import frame_pb2
from psrt.rpc.retry import RetryPolicy

POLICY = RetryPolicy(initial_s=0.1, factor=2.0, max_s=1.0, jitter=0.5, budget_s=10.0)
GONE = UnavailableError("gone")


def longest() -> float:
    return 0.0


def test_delays_grow_by_the_factor_up_to_the_longest() -> None:
    delays = [POLICY.next_delay(attempt, 0.0, GONE, longest) for attempt in range(6)]

    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_jitter_takes_away_at_most_its_share() -> None:
    delay = POLICY.next_delay(0, 0.0, GONE, lambda: 0.999)

    assert delay == pytest.approx(0.05, rel=0.01)


def test_an_attempt_number_beyond_float_range_is_still_a_delay() -> None:
    assert POLICY.next_delay(10_000, 0.0, GONE, longest) == 1.0


def test_budget_ends_the_retries() -> None:
    assert POLICY.next_delay(9, 8.9, GONE, longest) == 1.0
    assert POLICY.next_delay(9, 9.0, GONE, longest) is None


@pytest.mark.parametrize(
    "error",
    [
        TableError("unknown"),
        DeadlineError("late"),
        UnavailableError("shutting down", code=ErrorCode.STOPPING),
    ],
)
def test_error_that_does_not_heal_is_not_retried(error: PsrtError) -> None:
    assert POLICY.next_delay(0, 0.0, error, longest) is None


def test_every_method_may_be_repeated_because_it_is_idempotent_or_keyed() -> None:
    assert [method.name for method, spec in METHODS.items() if not spec.repeatable] == []


def test_only_pushes_and_records_carry_a_push_key() -> None:
    keyed = {method for method, spec in METHODS.items() if spec.has_push_key}

    assert keyed == {Method.PUSH, Method.EXCHANGE, Method.RECORDS}


def test_the_table_of_calls_is_the_enum_of_the_proto_file() -> None:
    proto = {
        name.removeprefix("METHOD_"): number
        for name, number in frame_pb2.Method.items()
        if number != frame_pb2.METHOD_UNSPECIFIED
    }

    assert {method.name: int(method) for method in Method} == proto
    assert set(METHODS) == set(Method)
