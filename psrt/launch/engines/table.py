"""The table of engines: how each makes an engine for a plan, and the plan as text."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from psrt.launch.children import Engine
from psrt.launch.engines import kubernetes, local, mpi, ray, slurm, slurm_job, ssh
from psrt.launch.plan import Plan

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class EngineKind:
    """One row: `make` an engine for a plan, with a function for lines of progress.

    `describe` returns what `--dry-run` prints, all that the engine would start; it starts nothing.
    `submit` hands the plan to a scheduler, follows the job and returns the exit code, or returns
    None where the processes are to be started right here. A `limit_signal` announces the end of the
    time of a job: it ends after a cut, and then `again` queues it again.
    """

    make: Callable[[Plan, Say], Engine]
    describe: Callable[[Plan], str]
    submit: Callable[[Plan, Say], int | None] | None = None
    limit_signal: signal.Signals | None = None
    again: Callable[[Say], None] | None = None


TABLE = {
    "local": EngineKind(lambda plan, say: local.LocalEngine(say), local.described),
    "ssh": EngineKind(ssh.ssh_engine, ssh.described),
    "mpi": EngineKind(mpi.mpi_engine, mpi.described),
    "slurm": EngineKind(
        slurm.slurm_engine,
        slurm_job.described,
        slurm_job.submit,
        slurm_job.LIMIT_SIGNAL,
        slurm_job.requeue,
    ),
    "kubernetes": EngineKind(kubernetes.kubernetes_engine, kubernetes.described),
    "ray": EngineKind(ray.ray_engine, ray.described),
}
"""Name, one of `ENGINES` in `psrt.config.sections` → its row."""
