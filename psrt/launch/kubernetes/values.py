"""Values of the chart for a plan: the chart gives addresses and numbers, the plan all else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from psrt.config.sections import JobConfig
from psrt.core.errors import ConfigError
from psrt.launch.brought import brought_files
from psrt.launch.plan import PSERVER, ChildId, Plan

FLAGS_OF_CHART = {
    "pserver": ("--config", "--host", "--port", "--num-gradient-servers", "--ready-file"),
    "trainer": ("--endpoints", "--trainers", "--trainer-id", "--report"),
}
"""Flags that the chart gives, in place of those of the plan; a report is printed."""

_INSECURE = "--insecure"
_DIRECTORY = "--checkpoint-dir"
_LONGEST_NAME = 40


def release_name(job_name: str) -> str:
    """The name of a job as Kubernetes takes one: `ctr_dnn` → `ctr-dnn`."""
    name = re.sub(r"[^a-z0-9]+", "-", job_name.lower())[:_LONGEST_NAME].strip("-")
    return name if name[:1].isalpha() else f"job-{name}".strip("-")[:_LONGEST_NAME]


def values_of(plan: Plan, job: JobConfig) -> dict[str, Any]:
    """Values that precede those of a user's file. Raises `ConfigError` for files of the job."""
    config = plan.config
    files = {name: _text(name, raw) for name, raw in brought_files(config, job).items()}
    (pserver, *_), (trainer, *_) = plan.pservers(lambda child: ""), plan.trainers(["a:1"])
    of_pservers = _without(_flags(pserver.arguments, PSERVER), FLAGS_OF_CHART["pserver"])
    of_trainers = _without(_flags(trainer.arguments, "trainer"), FLAGS_OF_CHART["trainer"])
    variables = {**plan.carried, **plan.variables}
    directory = _value(of_pservers, _DIRECTORY)
    values: dict[str, Any] = {
        "workload": "jobs",
        "fullnameOverride": "",
        "job": {"file": Path(config.job).name, "files": files, "configMap": ""},
        "pservers": {
            "count": config.pservers,
            "restarts": config.recoveries if job.retained_bytes > 0 else 0,
            "arguments": _without(of_pservers, (_DIRECTORY, _INSECURE)),
        },
        "trainers": {
            "count": config.trainers,
            "restarts": config.restarts,
            "arguments": ["--report", "/dev/stdout", *_without(of_trainers[:-1], (_INSECURE,))],
        },
        "settings": _settings(variables),
        "variables": {n: v for n, v in variables.items() if not n.startswith("PSRT_")},
    }
    if directory:
        recovers = job.durability != "replica"
        values["checkpoints"] = {"enabled": True, "url": directory, "recover": recovers}
    if _INSECURE in of_pservers:
        values["insecure"] = True
    return values


def host_name(release: str, namespace: str, child: ChildId) -> str:
    """The name of a pserver's pod in the cluster."""
    group = f"{release}-{child.role}"
    return f"{group}-{child.index}.{group}.{namespace}.svc"


def _flags(arguments: Sequence[str], role: str) -> list[str]:
    return list(arguments[arguments.index(role) + 1 :])


def _without(arguments: Sequence[str], flags: Iterable[str]) -> list[str]:
    """The arguments without some flags and their values."""
    kept: list[str] = []
    skips = False
    for word in arguments:
        if word.startswith("--"):
            skips = word in flags
        if not skips:
            kept.append(word)
        elif not word.startswith("--"):
            skips = False
    return kept


def _value(arguments: Sequence[str], flag: str) -> str:
    return arguments[arguments.index(flag) + 1] if flag in arguments else ""


def _settings(variables: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Settings among variables, but for those of the launch: PSRT_DATA_EPOCHS → data, epochs."""
    found: dict[str, dict[str, str]] = {}
    for name, value in variables.items():
        head, _, rest = name.partition("_")
        section, _, key = rest.lower().partition("_")
        if head == "PSRT" and key and section != "launch":
            found.setdefault(section, {})[key] = value
    return found


def _text(name: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{name} is no text, so it cannot be part of a ConfigMap.",
            hint="Bring programs only; make data part of a volume, or read it by URL.",
        ) from error
