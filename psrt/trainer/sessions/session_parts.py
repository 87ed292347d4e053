"""The parts of a session: the run of a job, and the pservers or tables that it trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from psrt.config.sections import TrainerConfig
from psrt.core.errors import ConfigError
from psrt.core.quantities import counted
from psrt.core.specs import Collective, Geo
from psrt.executor.memory import Scope
from psrt.partition.transpile import local_program, program_for
from psrt.trainer.collectives import CollectiveCluster, seat_of
from psrt.trainer.inputs import Job, Outputs
from psrt.trainer.measuring import Progress
from psrt.trainer.models import Intervals, ModelSaver, PeriodicSaves
from psrt.trainer.training import (
    ConnectedCluster,
    Numerics,
    RunOptions,
    Say,
    SingleTrainer,
    TrainingRun,
    build_strategy,
    cluster_of,
)


def run_of(settings: TrainerConfig, job: Job, say: Say = print) -> TrainingRun:
    """The run of a job, with random numbers drawn for the batch that all trainers share."""
    mode = job.config.communication
    program = local_program(job.program) if settings.local else program_for(job.program, mode)
    options = RunOptions(
        replicas=settings.cpu_num,
        build=build_strategy(),
        keep=Outputs(job.model).names,
        first_example=settings.trainer_id * job.config.data.batch_size,
        updates_here=settings.local or isinstance(mode, Geo),
        numerics=Numerics(settings.on_nan, job.model.loss.name, say),
    )
    return TrainingRun(program, Scope(), options)


Cluster: TypeAlias = ConnectedCluster | SingleTrainer | CollectiveCluster
"""The parameters of a training: on pservers, in this process, or in each of a group."""


def cluster_for(settings: TrainerConfig, job: Job, run: TrainingRun, say: Say) -> Cluster:
    """Return the pservers of a job, or one trainer's own parameters."""
    job.check_trains()
    if settings.local:
        return SingleTrainer(job.program, run.scope)
    if isinstance(mode := job.config.communication, Collective):
        return group_of(settings, mode, run)
    return cluster_of(settings, job, say, run.local_parameters(job.config.communication))


def saver_of(
    settings: TrainerConfig, job: Job, run: TrainingRun, cluster: Cluster, say: Say
) -> ModelSaver:
    """The saver of the parameters as they are now."""
    return ModelSaver(job, run.scope, cluster, settings.on_nan, say)


def saves_of(
    settings: TrainerConfig, saver: ModelSaver, progress: Progress, saved: Callable[[str], None]
) -> PeriodicSaves | None:
    """The models that trainer 0 saves while training goes on; None for the others.

    Raises `ConfigError` if there is no directory to save to.
    """
    intervals = Intervals(settings.save_every_steps, settings.save_every_epochs)
    if settings.trainer_id or intervals == Intervals():
        return None
    if not settings.save:
        raise ConfigError(
            "[trainer] save_every_steps or save_every_epochs is set, but there is no directory to "
            "save to.",
            hint="Give --save DIR: the model after N steps is saved to DIR-step-N.",
        )
    place = Path(settings.save).resolve()
    return PeriodicSaves(
        place, intervals, settings.save_total_limit, saver.save, progress.paused, saved
    )


def group_of(settings: TrainerConfig, mode: Collective, run: TrainingRun) -> CollectiveCluster:
    """The trainers of a job without pservers, which meet here."""
    return CollectiveCluster(
        seat_of(
            settings.trainer_id, settings.trainers, settings.trainer_endpoints, settings.device
        ),
        mode,
        run.program,
        run.scope,
        run.executor,
        connect_timeout_s=settings.connect_timeout_s,
        call_timeout_s=settings.call_timeout_s,
    )


def print_job(job: Job, settings: TrainerConfig, say: Say) -> None:
    config, data = job.config, job.config.data
    where = "trains here, without pservers"
    if not settings.local:
        where = f"trainer {settings.trainer_id} of {settings.trainers}, "
        is_group = config.mode == "collective"
        pservers = "no pservers" if is_group else counted(len(settings.endpoints), "pserver")
        where += f"{pservers}, mode {config.mode}"
    epochs = counted(data.epochs, "epoch")
    say(f"job {config.name}: {where}, batch {data.batch_size}, {epochs}")
