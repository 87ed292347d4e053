"""The section `[plan]`: settings of `psrt plan`."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting


@dataclass(frozen=True)
class PlanConfig:
    """Where the parameters of a job would lie; nothing is started."""

    job: str = setting("", "Job file (TOML).", positional="JOB.toml")
    endpoints: tuple[str, ...] = fields.endpoints()
    format: str = setting(
        "text", "How the plan is printed: text for people, json.", choices=("text", "json")
    )
    size: bool = setting(
        False, "Tell memory, requests, network and how many pservers it takes, by [size]."
    )

    def __post_init__(self) -> None:
        fields.check_endpoints(self.endpoints)
