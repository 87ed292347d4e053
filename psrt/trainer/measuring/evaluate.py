"""Tests a model on held-back batches: forward only, rows read without creating any.

Rows come from any `ParamSource`: the pservers after training, or a saved model. They are pulled in
a background thread while the previous batch computes. One trainer tests all files: the wire has no
reduction among trainers, and when trainer 0 tests the others have completed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from psrt.core.types import F32
from psrt.executor.memory import Scope
from psrt.executor.ports import ParamSource
from psrt.executor.program import Executor
from psrt.trainer.inputs import PREPARED_AHEAD, Ahead, Job, Outputs, PreparedBatch, bind
from psrt.trainer.measuring.metrics import Tally, number
from psrt.trainer.measuring.scored_rows import ScoredRows

PULLED_AHEAD = 2


def test(
    job: Job, scope: Scope, batches: Generator[PreparedBatch, None, None], source: ParamSource
) -> Tally:
    """Loss, AUC and metrics over `batches`; metrics count from zero, dropout is off."""
    scope.reset_state(job.program)
    executor = Executor(job.program.clone(for_test=True), scope)
    outputs, tally = Outputs(job.model), Tally(ScoredRows())

    def pulled() -> Generator[tuple[PreparedBatch, Mapping[str, F32]], None, None]:
        with Ahead(batches, PREPARED_AHEAD) as prepared:
            for batch in prepared:
                yield batch, source.pull_rows(batch.wanted)

    with Ahead(pulled(), PULLED_AHEAD, name="test-rows") as ahead:
        for batch, rows in ahead:
            bound = bind(batch, rows)
            fetched = executor.run(batch.feed, outputs.names, bound, roles=("forward",))
            tally.update(outputs.read(fetched), batch.examples)
    return tally


def summary(tested: Tally) -> dict[str, Any]:
    """Return the numbers of the report; None for those not measured."""
    return {
        "test_examples": tested.examples,
        "test_loss": number(tested.loss.value()),
        "test_auc": number(tested.auc.value()),
        "test_metrics": {name: number(value) for name, value in tested.metrics.items()},
    }
