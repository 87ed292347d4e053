"""The program of every example computes the same with all passes, alone and on two replicas."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt import BuildStrategy, ParallelExecutor
from psrt.communicator.local import LocalCommunicator
from psrt.config.load import load_job
from psrt.core.types import Array
from psrt.executor.strategies import ReduceStrategy
from psrt.partition.transpile import local_program
from psrt.trainer.inputs import batches
from psrt.trainer.inputs import job as jobs
from psrt.trainer.training.run_options import build_strategy
from psrt.trainer.training.single_trainer import tables_of
from tests.unit.docs.test_examples import ALL, Example, copied

BATCHES = 8


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("example", ALL, ids=lambda example: example.job)
def test_passes_change_nothing_an_example_computes(
    example: Example, replicas: int, tmp_path: Path
) -> None:
    job_file = copied(example.job, tmp_path)
    example.sample(job_file.parent)
    job = jobs.load_job(load_job(str(job_file), environ={}).config)

    plain = losses_and_parameters(job, BuildStrategy(reduce_strategy=ReduceStrategy.Reduce))
    passed = losses_and_parameters(job, build_strategy(), replicas)

    np.testing.assert_allclose(passed[0], plain[0], rtol=2e-4)
    for name, values in plain[1].items():
        scale = float(np.abs(values).max())
        # Adam divides by the size of a gradient: one near zero moves its weight by its rounding.
        np.testing.assert_allclose(passed[1][name], values, atol=3e-3 * scale, err_msg=name)


def losses_and_parameters(
    job: jobs.Job, build: BuildStrategy, replicas: int = 1
) -> tuple[list[float], dict[str, Array]]:
    """Of some steps over the job's first batches, trained here."""
    program = local_program(job.program)
    scope = psrt.Scope()
    scope.init_parameters(program)
    tables = LocalCommunicator(tables_of(job.program, scope))
    apart = [p.name for p in program.trained() if p.distributed]
    loss, losses = job.model.loss.name, []
    roles = ("forward", "backward", "optimize")
    with ParallelExecutor(program, scope, replicas, build, source=tables, keep=[loss]) as executor:
        prepared = itertools.islice(batches.feed(job, batches.training_files(job, 0, 1)), BATCHES)
        for batch in prepared:
            losses.append(float(executor.run(batch.feed, [loss], roles=roles)[0]))
            gradients = executor.gradients()
            tables.finish({name: gradients[name] for name in apart})
    return losses, {name: scope[name] for name in scope if name in program.parameters}
