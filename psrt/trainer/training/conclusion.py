"""The end of a job on trainer 0: once all others have completed, it saves and tests the model.

It saves first: a test that fails, or is interrupted, costs no model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from psrt.config.sections import TrainerConfig
from psrt.core.clock import MonotonicClock
from psrt.core.types import Array
from psrt.trainer.inputs import Job, batches
from psrt.trainer.measuring import evaluate
from psrt.trainer.models import export, manifest_of
from psrt.trainer.training.completion import CompletionWait, await_others, waiting_turn
from psrt.trainer.training.numerics import FiniteModel
from psrt.trainer.training.process import Say
from psrt.trainer.training.session_parts import Cluster
from psrt.trainer.training.training_run import TrainingRun


class Conclusion:
    """The work of trainer 0 after its last step; call `save_and_test` once.

    `saved` gets the directory of the model once it is complete.
    """

    def __init__(
        self,
        settings: TrainerConfig,
        job: Job,
        run: TrainingRun,
        cluster: Cluster,
        say: Say,
        saved: Callable[[str], None],
    ) -> None:
        self._saved = saved
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
        cluster, manifest = self._cluster, manifest_of(self._job)
        checks = FiniteModel(self._settings.on_nan, self._say)
        sparse = {table: partial(cluster.rows, table) for table in cluster.tables}
        pages = {table: partial(checks.pages, table, rows) for table, rows in sparse.items()}
        export.save(directory, manifest, checks.dense(self._dense()), pages)
        rows = sum(manifest.rows(table) for table in manifest.sparse)
        self._say(f"saved {directory}: {len(manifest.dense)} dense parameters, {rows:,} rows")

    def _dense(self) -> dict[str, Array]:
        """Every dense parameter, trained or not."""
        parameters = self._job.program.parameters.values()
        return {p.name: self._run.scope[p.name] for p in parameters if not p.sparse}

    def _test(self) -> dict[str, Any]:
        source = batches.feed(self._job, self._tests)
        tested = evaluate.test(self._job, self._run.scope, source, self._communicator)
        self._say(f"test  {tested.examples:,} examples  {tested.text()}")
        return evaluate.summary(tested)
