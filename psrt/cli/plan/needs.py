"""Memory that each pserver of a running job needs by its plan, for `psrt doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.config.load import load, load_job
from psrt.config.sections import SizeConfig


def memory_needs(file: str, endpoints: Sequence[str]) -> dict[str, float]:
    """Bytes by endpoint, by the program of a job file and its section [size].

    Raises `ConfigError` if the use of a table is neither declared nor sampled there.
    """
    from psrt.cli.plan import use
    from psrt.sizing.sizing import size
    from psrt.trainer.inputs import load_job as build

    cluster, job = load(SizeConfig, file=file).config, build(load_job(file).config)
    workload, limits = use.workload_of(job, cluster), use.limits_of(cluster)
    found = size(lambda _: job.plan(tuple(endpoints)), workload, limits, len(endpoints))
    return {each.endpoint: each.memory_bytes for each in found.loads}
