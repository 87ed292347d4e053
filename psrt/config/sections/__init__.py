"""sections: the settings of psrt, a frozen dataclass for each section of a TOML file.

Dataclasses hold plain data: `psrt.config.load` fills them.

    fields         fields that several sections declare
    tables         `[tables.NAME]`: options of one sparse table
    communication  `[communication]`: the mode, its settings, and wire precision
    job            `[job]`, `[data]` and `[partition]`: a job file
    pserver        `[pserver]`: a pserver process
    trainer        `[trainer]`: a trainer process
    launch         `[launch]`: a cluster on this host
    plan           `[plan]`: `psrt plan`
    size           `[size]`: the cluster that `psrt plan --size` sizes
    predict        `[predict]`: `psrt predict`
"""

from psrt.config.sections import communication, tables
from psrt.config.sections.fields import BUSY_POLL_US, CARRIERS
from psrt.config.sections.job import DATA_FORMATS, SHARES, DataConfig, JobConfig, PartitionConfig
from psrt.config.sections.launch import LaunchConfig
from psrt.config.sections.plan import PlanConfig
from psrt.config.sections.predict import PredictConfig
from psrt.config.sections.pserver import PserverConfig
from psrt.config.sections.size import SizeConfig, stripes_for
from psrt.config.sections.tables import TableConfig, section_of
from psrt.config.sections.trainer import TrainerConfig

__all__ = ["BUSY_POLL_US", "CARRIERS"]
__all__ += ["DATA_FORMATS", "SHARES", "DataConfig", "JobConfig", "LaunchConfig", "PartitionConfig"]
__all__ += ["PlanConfig", "PredictConfig", "PserverConfig", "SizeConfig", "stripes_for"]
__all__ += ["TableConfig", "TrainerConfig", "communication", "section_of", "tables"]
