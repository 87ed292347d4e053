"""Findings of a job, from the facts of its pservers: plain functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from psrt.core.quantities import format_bytes
from psrt.doctor.findings import Finding
from psrt.status import ClusterFacts, PserverFacts, waits

SKEW_S = 2.0
SILENT_S = 30.0
SLOWER = 3.0
LEAST_APPLY_S = 1.0
FULL = 0.9


def check_cluster(
    facts: ClusterFacts, own_version: str, silent_s: float = SILENT_S
) -> list[Finding]:
    """A trainer that others wait for is silent once it has not called for `silent_s`."""
    pservers = facts.reached
    return [
        *_same_job(pservers),
        *_releases(pservers, own_version),
        *(found for each in pservers for found in _one(each)),
        *_slow(pservers),
        *_waits(facts, silent_s),
    ]


def _same_job(pservers: Sequence[PserverFacts]) -> Iterator[Finding]:
    jobs = {each.job for each in pservers if each.job}
    plans = {each.plan_hash for each in pservers if each.plan_hash}
    if len(jobs) > 1 or len(plans) > 1:
        served = ", ".join(f"{each.endpoint} {each.job or 'none'}" for each in pservers)
        yield Finding(
            "different-jobs",
            "the pservers",
            f"they serve different jobs or plans: {served}.",
            "Give every trainer the same job file and the same --endpoints, in the same order.",
        )


def _releases(pservers: Sequence[PserverFacts], own: str) -> Iterator[Finding]:
    for each in pservers:
        if each.version and each.version != own:
            yield Finding(
                "versions",
                each.endpoint,
                f"it runs psrt {each.version}, and this is psrt {own}.",
                "Install one release on all hosts.",
            )


def _one(each: PserverFacts) -> Iterator[Finding]:
    if each.clock_ahead_s is not None and abs(each.clock_ahead_s) > SKEW_S:
        side = "ahead of" if each.clock_ahead_s > 0 else "behind"
        yield Finding(
            "clock",
            each.endpoint,
            f"its clock is {abs(each.clock_ahead_s):.0f} s {side} the one here.",
            "Synchronise both hosts (chrony, systemd-timesyncd): ends of tokens and certificates "
            "depend on it.",
        )
    if each.memory_limit_bytes and each.memory_bytes > FULL * each.memory_limit_bytes:
        used, limit = format_bytes(each.memory_bytes), format_bytes(each.memory_limit_bytes)
        yield Finding(
            "pserver-memory",
            each.endpoint,
            f"it uses {used} of {limit}.",
            "Resume with more pservers, or limit tables (max_bytes of a Lifecycle).",
        )
    if each.problem:
        remedy = "docs/reference/errors.md describes errors by name."
        yield Finding("job-error", each.endpoint, each.problem, remedy)
    if each.recovers_from:
        trainers = ", ".join(map(str, each.recovers_from))
        yield Finding(
            "recovering",
            each.endpoint,
            f"it recovers, and waits for pushes that trainers {trainers} send again.",
            "Start these trainers, or give them time.",
        )


def _slow(pservers: Sequence[PserverFacts]) -> Iterator[Finding]:
    """A pserver that takes much more time for its updates than the others."""
    times = {each.endpoint: each.counters.get("pserver_apply_s", 0.0) for each in pservers}
    for endpoint, time_s in times.items():
        others = [value for name, value in times.items() if name != endpoint]
        usual = statistics.median(others) if others else time_s
        if time_s > LEAST_APPLY_S and time_s > SLOWER * usual:
            yield Finding(
                "slow-pserver",
                endpoint,
                f"its updates took {time_s:.0f} s in all, those of the others {usual:.0f} s.",
                "See psrt plan for the balance of the job, and other load on that host.",
            )


def check_needs(facts: ClusterFacts, needs: Mapping[str, float]) -> Iterator[Finding]:
    """Pservers with less memory than a plan of their job needs; `needs` are bytes by endpoint."""
    for each in facts.reached:
        need = needs.get(each.endpoint, 0.0)
        if each.memory_limit_bytes and need > each.memory_limit_bytes:
            yield Finding(
                "plan-memory",
                each.endpoint,
                f"the job takes {format_bytes(need)} there, and the pserver may use "
                f"{format_bytes(each.memory_limit_bytes)}.",
                "Use more pservers (psrt plan --size finds how many), or raise MemoryMax= or the "
                "limit of the container.",
            )


def _waits(facts: ClusterFacts, silent_s: float) -> Iterator[Finding]:
    for wait in waits(facts):
        if wait.silent_s is not None and wait.silent_s >= silent_s:
            yield Finding(
                "silent-trainer",
                wait.where,
                f"{wait.text}, silent for {wait.silent_s:.0f} s.",
                "See the log of the awaited trainer; kill -QUIT writes its stacks there.",
            )
        elif wait.awaited.endswith("to start"):
            yield Finding(
                "missing-trainer",
                wait.where,
                f"{wait.text}.",
                "Start it with the same --trainers and job, and its own --trainer-id.",
            )
