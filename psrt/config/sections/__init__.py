"""sections: every setting of psrt, declared once, in a frozen dataclass for each TOML section.

Flags, TOML keys, `PSRT_<SECTION>_<FIELD>` variables, `configs/reference.toml` and `psrt config
show` are derived from these dataclasses; `psrt.config.load` fills them.

    fields         fields that several sections declare
    tables         `[tables.NAME]`: options of one sparse table
    communication  `[communication]`: the mode, its settings, and wire precision
    validation     `[validation]`: tests while training goes on
    job            `[job]`, `[data]` and `[partition]`: a job file
    pserver        `[pserver]`: a pserver process
    trainer        `[trainer]`: a trainer process
    launch         `[launch]`: a cluster on this host or by an engine
    plan           `[plan]`: `psrt plan`
    size           `[size]`: the cluster that `psrt plan --size` sizes
    predict        `[predict]`: `psrt predict`
"""

from typing import Any

from psrt.config.sections import communication, tables
from psrt.config.sections.fields import BUSY_POLL_US, CARRIERS
from psrt.config.sections.job import DATA_FORMATS, SHARES, DataConfig, JobConfig, PartitionConfig
from psrt.config.sections.launch import ENGINES, LaunchConfig
from psrt.config.sections.plan import PlanConfig
from psrt.config.sections.predict import PredictConfig
from psrt.config.sections.pserver import PserverConfig
from psrt.config.sections.size import SizeConfig, stripes_for
from psrt.config.sections.tables import TableConfig, section_of
from psrt.config.sections.trainer import TrainerConfig
from psrt.config.sections.validation import ValidationConfig

__all__ = ["BUSY_POLL_US", "CARRIERS", "DATA_FORMATS", "ENGINES", "FREE_TABLES", "SECTIONS"]
__all__ += ["SHARES", "DataConfig", "JobConfig", "LaunchConfig", "PartitionConfig", "PlanConfig"]
__all__ += ["PredictConfig", "PserverConfig", "SizeConfig", "TableConfig", "TrainerConfig"]
__all__ += ["ValidationConfig"]
__all__ += ["communication", "section_of", "stripes_for", "tables"]

FREE_TABLES = {"job": ("params",), "data": ("columns", "options")}
"""Keys of a section that hold tables, whose keys are not declared here."""

SECTIONS: dict[str, type[Any]] = {
    "job": JobConfig,
    "data": DataConfig,
    "partition": PartitionConfig,
    "validation": ValidationConfig,
    "pserver": PserverConfig,
    "trainer": TrainerConfig,
    "launch": LaunchConfig,
    "plan": PlanConfig,
    "size": SizeConfig,
    "predict": PredictConfig,
}
"""The sections of a TOML file by name, except `[communication]` and `[tables.NAME]`."""
