"""The wait for a pserver that is not up yet."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import TypeVar

from psrt.core.clock import Clock
from psrt.core.errors import AccessError, ErrorCode, UnavailableError
from psrt.core.randomness import system_random
from psrt.rpc.error_text import not_admitted, unreachable
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.route import Route

_POLICY = RetryPolicy(max_s=0.5)
_REPORT_S = 5.0

T = TypeVar("T")


def connected(
    route: Route,
    greet: Callable[[], T],
    timeout_s: float,
    clock: Clock,
    closed: threading.Event,
    on_wait: Callable[[str], None],
) -> T:
    """Call `greet` until the pserver replies; raises `UnavailableError` after `timeout_s`.

    A refusal is raised at once, with the endpoint.
    """
    policy = dataclasses.replace(_POLICY, budget_s=timeout_s)
    started, attempt, reported_s = clock.now(), 0, 0.0
    while True:
        place = route.place
        try:
            return greet()
        except AccessError as error:
            raise not_admitted(route.place.endpoint, error) from error
        except UnavailableError as error:
            if error.code is ErrorCode.TAKING_OVER:
                raise
            route.failed(error, place)
            elapsed_s = clock.now() - started
            delay_s = policy.next_delay(attempt, elapsed_s, error, system_random.random)
            if delay_s is None or closed.is_set():
                if error.code is ErrorCode.RESIZING:
                    raise
                raise unreachable(route.place.endpoint, elapsed_s, error) from error
            if elapsed_s >= reported_s:
                so_far = f"{elapsed_s:.0f} of {timeout_s:.0f} s"
                why = f": {error.message}" if error.code is ErrorCode.RESIZING else ""
                on_wait(f"waiting for pserver {route.place.endpoint} ({so_far}){why}")
                reported_s = elapsed_s + _REPORT_S
            closed.wait(delay_s)
            attempt += 1
