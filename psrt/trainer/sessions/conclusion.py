"""The end of a job on trainer 0: once all others have completed, it saves and tests the model.

It saves first: a test that fails, or is interrupted, costs no model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from psrt.config.sections import TrainerConfig
from psrt.core.clock import MonotonicClock
from psrt.trainer.inputs import Job, batches
from psrt.trainer.measuring import evaluate
from psrt.trainer.sessions.saved_session import tested_model
from psrt.trainer.sessions.session_parts import Cluster, saver_of
from psrt.trainer.training import CompletionWait, Say, TrainingRun, await_others, waiting_turn


class Conclusion:
    """The work of trainer 0 after its last step; call `save_and_test` once.

    `saved` gets the directory of the model once it is complete. A job that keeps its best model
    and `has_best` has saved it, and tests that one.
    """

    def __init__(
        self,
        settings: TrainerConfig,
        job: Job,
        run: TrainingRun,
        cluster: Cluster,
        say: Say,
        saved: Callable[[str], None],
        has_best: bool = False,
    ) -> None:
        self._saved = saved
        self._keeps_best = job.config.validation.keep_best and has_best
        self._settings, self._job, self._run, self._say = settings, job, run, say
        self._cluster, self._communicator = cluster, cluster.communicator
        self._tests = batches.test_files(job)

    def save_and_test(self) -> dict[str, Any]:
        """Wait for all others (see `completion`), save, test; returns numbers of the report."""
        if not self._tests and not self._settings.save:
            return {}
        self._await_all()
        if self._settings.save:
            self._save(Path(self._settings.save))
            self._saved(self._settings.save)
        return self._test() if self._tests else {}

    def _await_all(self) -> None:
        self._run.flush(self._settings.call_timeout_s, final=True)
        self._communicator.declare_trained()
        arrive = waiting_turn(self._communicator, self._job.config.communication)
        await_others(self._waiting(), self._cluster.members, arrive)
        self._communicator.is_alone()
        self._run.flush(self._settings.call_timeout_s, final=True)

    def _waiting(self) -> CompletionWait:
        me, patience_s = self._settings.trainer_id, self._settings.call_timeout_s
        policy = self._job.config.communication.on_trainer_loss
        return CompletionWait(me, patience_s, policy, MonotonicClock(), self._say)

    def _save(self, directory: Path) -> None:
        if self._keeps_best:
            self._say(f"{directory} has the model of the best validation")
            return
        saver_of(self._settings, self._job, self._run, self._cluster, self._say).save(directory)

    def _test(self) -> dict[str, Any]:
        if self._keeps_best:
            tested = tested_model(self._job, Path(self._settings.save), self._tests)
        else:
            source = batches.feed(self._job, self._tests)
            tested = evaluate.test(self._job, self._run.scope, source, self._communicator)
        self._say(f"test  {tested.examples:,} examples  {tested.text()}")
        return evaluate.summary(tested)
