"""A run without faults, in this process: the bits that Sync must end with."""

from __future__ import annotations

import functools

from psrt.core import specs
from tests.faults.books import Values, joined
from tests.faults.ledger_job import TrainerJob, plan_of, run_steps
from tests.support.communicators import ENDPOINTS, Builder, ModeUnderTest


@functools.cache
def without_faults(trainers: int, steps: int, elements: int) -> Values:
    """The values of a job in Sync on two pservers."""
    builder = Builder("pserver")
    try:
        plan = plan_of(ENDPOINTS, elements, "sync")
        cluster = builder(ModeUnderTest(specs.Sync()), trainers, plan=plan)
        numbers = {id(made): number for number, made in enumerate(cluster.trainers)}

        def run(made: object) -> None:
            job = TrainerJob(
                *(numbers[id(made)], 0, trainers, "sync", "inproc", ENDPOINTS, ""),
                *(steps, 0.0, elements),
            )
            run_steps(job, made, made, lambda *event: None)

        cluster.on_all(run)
        return _values(cluster.pservers)
    finally:
        builder.close()


def _values(pservers: list) -> Values:
    rows, blocks = {}, {}
    for service in pservers:
        ids, weights, _ = service.tables.sparse("emb").export(0, 1 << 20)
        rows |= dict(zip(ids.tolist(), weights, strict=True))
        for table in service.tables.all():
            if table.spec.name != "emb":
                name = f"{table.spec.parameter}@{table.spec.offset:09d}"
                blocks[name] = table.read()[0].reshape(-1)
    return Values(rows, joined(blocks))
