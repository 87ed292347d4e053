"""Every setting of psrt, declared once: name, type, default, one line of help.

Command-line flags, TOML keys, `PSRT_<SECTION>_<FIELD>` variables, `configs/reference.toml` and
`psrt config show` are derived from the frozen dataclasses of `psrt.config.sections`, so a setting
that is not declared there does not exist.

The sections of a TOML file are the keys of `SECTIONS`, `[communication]`, whose keys depend on its
mode, and `[tables.NAME]` for each sparse table.
"""

from __future__ import annotations

from typing import Any

from psrt.config.sections import (
    DataConfig,
    JobConfig,
    LaunchConfig,
    PartitionConfig,
    PlanConfig,
    PredictConfig,
    PserverConfig,
    SizeConfig,
    TrainerConfig,
)

__all__ = ["FREE_TABLES", "SECTIONS"]

FREE_TABLES = {"job": ("params",), "data": ("columns", "options")}
"""Keys of a section that hold tables, whose keys are not declared here."""

SECTIONS: dict[str, type[Any]] = {
    "job": JobConfig,
    "data": DataConfig,
    "partition": PartitionConfig,
    "pserver": PserverConfig,
    "trainer": TrainerConfig,
    "launch": LaunchConfig,
    "plan": PlanConfig,
    "size": SizeConfig,
    "predict": PredictConfig,
}
