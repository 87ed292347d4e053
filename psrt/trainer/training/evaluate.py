"""Tests a model on held-back batches: forward only, rows read without creating any.

Rows come from anything that answers `pull_rows`: the pservers after training, or a saved model.
They are pulled in a background thread while the previous batch computes. One trainer tests all
files: the wire has no reduction among trainers, and when trainer 0 tests the others have completed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Protocol

from psrt.core.types import F32
from psrt.executor.memory import RowBatch
from psrt.graph.program import Role
from psrt.trainer.inputs import Ahead, Feed, Fetched, Outputs, PreparedBatch, bind
from psrt.trainer.training.loop import RowSource
from psrt.trainer.training.metrics import Tally, number

PULLED_AHEAD = 2


class Forward(Protocol):
    """The part of an executor an evaluation uses."""

    def run(
        self,
        feed: Feed,
        fetch: Sequence[str],
        rows: Mapping[str, RowBatch],
        roles: Sequence[Role],
    ) -> Sequence[Fetched]: ...


def evaluate(
    batches: Iterator[PreparedBatch], executor: Forward, source: RowSource, outputs: Outputs
) -> Tally:
    """Loss, AUC and metrics over all batches."""
    tally = Tally()

    def pulled() -> Generator[tuple[PreparedBatch, Mapping[str, F32]], None, None]:
        for batch in batches:
            yield batch, source.pull_rows(batch.wanted)

    with Ahead(pulled(), PULLED_AHEAD, name="test-rows") as ahead:
        for batch, rows in ahead:
            bound = bind(batch, rows)
            fetched = executor.run(batch.feed, outputs.names, bound, roles=("forward",))
            tally.update(outputs.read(fetched), batch.examples)
    return tally


def summary(tested: Tally) -> dict[str, Any]:
    """The report's numbers; None stands for what could not be measured."""
    return {
        "test_examples": tested.examples,
        "test_loss": number(tested.loss.value()),
        "test_auc": number(tested.auc.value()),
        "test_metrics": {name: number(value) for name, value in tested.metrics.items()},
    }
