"""The validations of a training: what `[validation]` asks for, made of its parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from psrt.config.sections import TrainerConfig
from psrt.core.errors import ConfigError, DataError
from psrt.core.specs import Collective
from psrt.core.threads import CrashReport
from psrt.trainer.inputs import Job, batches
from psrt.trainer.measuring import Curves, Progress, Tally, curves, evaluate
from psrt.trainer.sessions.saved_session import scope_of, tested_model
from psrt.trainer.sessions.session_parts import Cluster, saver_of
from psrt.trainer.training import Say, TrainingRun
from psrt.trainer.validating import Actions, DueSteps, EarlyEnd, Validated, Validator, contest_of


def validator_for(
    settings: TrainerConfig,
    job: Job,
    run: TrainingRun,
    cluster: Cluster,
    progress: Progress,
    course: Curves,
    saved: Callable[[str], None],
    say: Say,
) -> Validator | None:
    """The validations of trainer 0; None for the others, and in a job without such files.

    `saved` gets the directory of each model that is kept.
    Raises `ConfigError` for settings that need files, a directory or another metric.
    """
    config, files = job.config.validation, batches.validation_files(job)
    check_validation(settings, job)
    if not files or settings.trainer_id:
        return None
    saver = saver_of(settings, job, run, cluster, say)

    def test() -> Tally:
        scope = scope_of(job.program, saver.dense())
        return evaluate.test(job, scope, batches.feed(job, files), cluster.communicator)

    def keep() -> None:
        saver.save(Path(settings.save))
        saved(settings.save)

    def kept() -> Tally | None:
        with suppress(DataError):  # none, or of another program: the first one kept replaces it
            return tested_model(job, Path(settings.save), files)
        return None

    ends = cluster.end_early, progress.paused
    actions = Actions(test, keep, *ends, kept) if config.keep_best else Actions(test, None, *ends)
    return Validator(
        DueSteps(config.every_steps),
        contest_of(config, job.model),
        actions,
        say,
        partial(course.record, curves.VALIDATION),
    )


def check_validation(settings: TrainerConfig, job: Job) -> None:
    """Raise `ConfigError` for settings of [validation] that can have no effect."""
    config = job.config.validation
    if (config.patience or config.keep_best) and not job.config.data.validation:
        raise ConfigError(
            "[validation] has patience or keep_best, but [data] names no validation files.",
            hint='Add validation = ["data/valid-*"] to [data] of the job file.',
        )
    if config.patience and isinstance(job.config.communication, Collective) and not settings.local:
        raise ConfigError(
            "[validation] patience is set, but trainers of mode collective end together only.",
            hint="Leave patience out, or train in another mode.",
        )
    if config.keep_best and not settings.save and not settings.trainer_id:
        raise ConfigError(
            "[validation] keep_best is set, but there is no directory to keep a model in.",
            hint="Give --save DIR.",
        )


def looking_for_end(
    settings: TrainerConfig,
    job: Job,
    cluster: Cluster,
    ended: threading.Event,
    validated: Mapping[str, Any],
) -> EarlyEnd:
    """A context in which `ended` is set when trainer 0 ends the training of all early.

    It is set at once if it was in an earlier process, with as much patience, `validated` being the
    course of that.
    """
    patience, former = job.config.validation.patience, Validated.of(validated)
    looks = settings.trainer_id > 0 and (patience > 0 or bool(settings.callbacks))
    has_come = looks and former is not None and former.has_ended(patience)
    is_decided = partial(_ends_early, cluster)
    return EarlyEnd(is_decided, ended, CrashReport(), looks, has_come=has_come)


def _ends_early(cluster: Cluster) -> bool:
    return cluster.members().ends_early


def course_of(early_end: EarlyEnd, patience: int, step: int) -> dict[str, Any]:
    """The course of the validations as a trainer has it that makes none: whether all have ended."""
    return Validated(step, patience).plain() if early_end.has_come else {}
