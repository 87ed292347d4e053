"""The state that a pserver begins with: nothing, a cut, or that of a killed predecessor."""

from __future__ import annotations

import logging
import socket

from psrt.config.sections import PserverConfig
from psrt.coordinator.retention import Retention
from psrt.coordinator.schedule import CutSchedule
from psrt.core.errors import ConfigError
from psrt.pserver.checkpoints import (
    RecoveredPart,
    SavedCut,
    Settings,
    complete_cuts,
    find_cut,
    served_job,
)
from psrt.storage.locate import directory_at

log = logging.getLogger("psrt.pserver")

AUTO = "auto"
"""The `resume` of jobs that a scheduler may start again: the latest cut, if there is one."""


def cut_settings(config: PserverConfig) -> Settings | None:
    """Settings of the cuts that the job writes; None without a directory.

    Without a schedule cuts are full: nothing is recorded for one that may never come.
    """
    if not config.checkpoint_dir:
        return None
    schedule = CutSchedule(config.checkpoint_every_steps, config.checkpoint_every_s)
    return Settings(
        directory_at(config.checkpoint_dir),
        schedule,
        Retention(config.checkpoint_keep, config.checkpoint_keep_every),
        config.checkpoint_timeout_s,
        config.checkpoint_full_every if schedule.makes_cuts else 1,
        config.checkpoint_at_end,
        config.checkpoint_grace_s,
        config.delta_every_s,
        config.checkpoint_mib_per_s * (1 << 20),
    )


def resumed(config: PserverConfig, cuts: Settings | None) -> SavedCut | None:
    """The cut that the tables begin with; raises `ConfigError` if there is no such cut."""
    if not config.resume:
        return None
    if cuts is None:
        raise ConfigError("--resume needs a directory of cuts.", hint="Give --checkpoint-dir, too.")
    which = config.resume
    if which == AUTO:
        if not complete_cuts(cuts.directory):
            log.info("no complete cut in %s: begins anew", config.checkpoint_dir)
            return None
        which = "latest"
    found = find_cut(cuts.directory, which)
    log.info("begins with cut %d of %s", found.number, config.checkpoint_dir)
    return found


def recovered(config: PserverConfig, cuts: Settings | None) -> RecoveredPart | None:
    """The tables of a killed predecessor; raises `ConfigError` if no one could have served them."""
    if not config.recover:
        return None
    if cuts is None or not config.port:
        raise ConfigError(
            "--recover needs a directory of cuts, and the port of the killed pserver.",
            hint="Give --checkpoint-dir and --port, as the pserver had them.",
        )
    found = served_job.take_over(cuts.directory, name_at(config.port))
    if found is None:
        log.info("nothing to recover in %s: begins anew", config.checkpoint_dir)
    else:
        log.warning(
            "goes on with cut %d of %s%s",
            found.cut.number,
            config.checkpoint_dir,
            f" and local cut {found.number}" if found.number else "",
        )
    return found


def name_at(port: int) -> str:
    """The name of a pserver among those that write cuts to one directory."""
    return f"{socket.gethostname()}-{port}"
