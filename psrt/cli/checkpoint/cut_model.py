"""A cut as a saved model: its values, and the program of a job file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from psrt.config.load import load_job as read_job
from psrt.core.errors import ConfigError
from psrt.core.types import F32, I64, Shape
from psrt.executor.memory import initial_values
from psrt.graph.program import Parameter
from psrt.pserver.saved import CutState, CutTable
from psrt.trainer.inputs import Job, load_job
from psrt.trainer.models import Manifest, export, manifest_of


def write_model(
    state: CutState, job_file: str, place: Path, advance: Callable[[int], None]
) -> Manifest:
    """Write the model directory that `--save` would have written at the cut.

    Raises `ConfigError` without a job file, and if its parameters are not those of the cut.
    """
    if not job_file:
        raise ConfigError(
            f"cut {state.cut.number} has parameters but no program, which a saved model needs; "
            "nothing was written.",
            hint="Name the job file of the cut: --job JOB.toml. --to numpy needs none.",
        )
    job = load_job(read_job(job_file).config)
    check_fits(job, state, job_file)
    manifest = manifest_of(job)
    names = [name for name, parameter in job.program.parameters.items() if parameter.sparse]
    sparse = {
        name: partial(_pages, state.sparse[name], advance) for name in names if name in state.sparse
    }
    return export.save(place, manifest, _DenseValues(job, state, advance), sparse)


def check_fits(job: Job, state: CutState, job_file: str) -> None:
    """Raise `ConfigError` naming every trained parameter that the cut lacks or has otherwise."""
    wrong = [
        f"{parameter.name} {problem}"
        for parameter in job.program.trained()
        if (problem := _problem(parameter, state))
    ]
    if wrong:
        raise ConfigError(
            f"cut {state.cut.number} of job {state.cut.manifest['job']['id']} does not fit the "
            f"program of {job_file}: {'; '.join(wrong)}. Nothing was written.",
            hint="Name the job file that the cut was trained with.",
        )


def _problem(parameter: Parameter, state: CutState) -> str:
    needed: Shape = tuple(parameter.shape)
    found: Shape | None = None
    if parameter.sparse or parameter.distributed:
        needed = needed[1:]
        if parameter.name in state.sparse:
            found = (state.sparse[parameter.name].spec.width,)
    elif parameter.name in state.dense:
        found = state.dense[parameter.name].spec.shape
    if found is None:
        return "is not in the cut"
    return "" if found == needed else f"has the shape {found} in the cut, not {needed}"


class _DenseValues(Mapping[str, F32]):
    """Every dense parameter of a program, read when it is taken; untrained ones as they began."""

    def __init__(self, job: Job, state: CutState, advance: Callable[[int], None]) -> None:
        self._parameters = {
            name: each for name, each in job.program.parameters.items() if not each.sparse
        }
        self._state, self._advance = state, advance

    def __getitem__(self, name: str) -> F32:
        parameter, dense = self._parameters[name], self._state.dense.get(name)
        if dense is None:
            return initial_values(parameter)
        self._advance(dense.size_bytes)
        shape = tuple(parameter.shape)
        return dense.values(0, math.prod(shape)).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)


def _pages(table: CutTable, advance: Callable[[int], None]) -> Iterator[tuple[I64, F32]]:
    for group in table.groups(0, table.spec.virtual_shards):
        yield group.rows.ids, group.weights(table.spec.width)
        advance(group.size_bytes)
