"""The section `[plan]`: settings of `psrt plan`."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting


@dataclass(frozen=True)
class PlanConfig:
    """The placement of a job's parameters on pservers; nothing is started."""

    job: str = setting("", "Job file (TOML).", positional="JOB.toml")
    endpoints: tuple[str, ...] = fields.endpoints()
    format: str = setting(
        "text", "Output format: text for people, json for programs.", choices=("text", "json")
    )
    size: bool = setting(
        False,
        "Print memory, requests, network and the number of pservers, for the cluster in [size].",
    )

    def __post_init__(self) -> None:
        fields.check_endpoints(self.endpoints)
