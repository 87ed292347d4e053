"""Pods and Jobs as the API server describes them, reduced to what a launch decides by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psrt.launch.plan import ChildId

ROLE = "app.kubernetes.io/component"
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True)
class PodFacts:
    """One pod. `code` is the exit code of its container, None while that runs or waits.

    `created` and `finished` are times as text, which sorts like them.
    """

    name: str
    child: ChildId
    created: str
    node: str
    is_ready: bool
    has_started: bool
    code: int | None
    finished: str
    waits_for: str


@dataclass(frozen=True)
class JobFacts:
    """The Job of a role; `failure` is its reason and message once no pod is tried again."""

    role: str
    failure: str


def read_facts(text: str) -> tuple[dict[ChildId, list[PodFacts]], dict[str, JobFacts]]:
    """Return pods by process, the newest one last, and Jobs by role, of a list as JSON."""
    pods: dict[ChildId, list[PodFacts]] = {}
    jobs: dict[str, JobFacts] = {}
    for item in json.loads(text)["items"]:
        role = item["metadata"].get("labels", {}).get(ROLE, "")
        if item["kind"] == "Job":
            jobs[role] = JobFacts(role, _failure(item))
        elif INDEX in item["metadata"].get("annotations", {}):
            pod = _pod(item, role)
            pods.setdefault(pod.child, []).append(pod)
    return {child: sorted(p, key=lambda pod: pod.created) for child, p in pods.items()}, jobs


def first_failures(
    pods: Mapping[ChildId, list[PodFacts]], jobs: Mapping[str, JobFacts]
) -> dict[str, ChildId]:
    """Return, by the role of a Job that failed, the process that failed first.

    Kubernetes then ends the other pods of that Job, whose exit codes are no reason.
    """
    found: dict[str, ChildId] = {}
    for role in (role for role, job in jobs.items() if job.failure):
        last = [p[-1] for child, p in pods.items() if child.role == role and p[-1].code]
        if last:
            found[role] = min(last, key=lambda pod: pod.finished).child
    return found


def _pod(item: Mapping[str, Any], role: str) -> PodFacts:
    status, metadata = item.get("status", {}), item["metadata"]
    (state, *_) = [each["state"] for each in status.get("containerStatuses", [])] or [{}]
    ended = state.get("terminated")
    failed = status.get("phase") == "Failed"  # as after an eviction, also without a container
    return PodFacts(
        name=metadata["name"],
        child=ChildId(role, int(metadata["annotations"][INDEX])),
        created=metadata.get("creationTimestamp", ""),
        node=item.get("spec", {}).get("nodeName", ""),
        is_ready=dict(_conditions(status)).get("Ready") == "True",
        has_started=bool(ended or "running" in state),
        code=int(ended["exitCode"]) if ended else (255 if failed else None),
        finished=ended.get("finishedAt", "") if ended else "",
        waits_for=_waits_for(status, state),
    )


def _waits_for(status: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    if waiting := state.get("waiting"):
        return ": ".join(filter(None, (waiting.get("reason", ""), waiting.get("message", ""))))
    for each in status.get("conditions", []):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            return ": ".join(filter(None, (each.get("reason", ""), each.get("message", ""))))
    return ""


def _failure(job: Mapping[str, Any]) -> str:
    for each in job.get("status", {}).get("conditions", []):
        if each["type"] == "Failed" and each["status"] == "True":
            return f"{each.get('reason', 'Failed')}: {each.get('message', '')}"
    return ""


def _conditions(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in status.get("conditions", []):
        yield each["type"], each["status"]
