"""All pservers of a job, found from some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from psrt.core.errors import AccessError, ErrorCode, UnavailableError
from psrt.status.facts import ClusterFacts
from psrt.status.gathering import Gatherer, others_of_plan


@contextmanager
def gathering(
    endpoints: Sequence[str], timeout_s: float
) -> Iterator[tuple[Gatherer, ClusterFacts]]:
    """The pservers of the job that has those at `endpoints`, and a first look at them.

    Raises `UnavailableError` if none of them answers, `AccessError` if one refuses the caller.
    """
    with closing(Gatherer(endpoints, timeout_s)) as asked:
        first = asked.gather()
        _check_any(first)
        others = others_of_plan(first)
        if not others:
            yield asked, first
            return
    with closing(Gatherer([*endpoints, *others], timeout_s)) as gatherer:
        yield gatherer, gatherer.gather()


def _check_any(facts: ClusterFacts) -> None:
    """Raise the reason if no pserver answers; one that refuses is a better reason than silence."""
    if facts.reached:
        return
    refused = [each for each in facts.unreachable if each.code == ErrorCode.ACCESS_DENIED.name]
    reasons = "; ".join(f"{each.endpoint}: {each.reason}" for each in facts.unreachable)
    if refused:
        raise AccessError(f"This command was refused. {reasons}", hint=refused[0].hint)
    raise UnavailableError(
        f"No pserver answers. {reasons}",
        code=ErrorCode.UNAVAILABLE,
        hint="Compare the endpoints with the lines 'psrt pserver ready on'.",
    )
