"""Resident memory of a pserver's rows, measured and predicted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measuring import harness
from benchmarks.measuring.processes import resident_bytes
from benchmarks.workloads import ctr_data
from benchmarks.workloads.trainers import Who, connected, push, sparse_table
from psrt.core.tensors import SelectedRows
from psrt.sizing.footprint import sparse_footprint

STRIPES = 4
BATCH_ROWS = ctr_data.BATCH * ctr_data.SLOTS


def memory(optimizer: str, rows: int) -> harness.Figures:
    """Bytes of a row; the first batch is excluded, since it allocates buffers and kernels."""
    table = sparse_table("table", rows, ctr_data.WIDTH, optimizer)
    with (
        harness.daemons(1, f"--stripes={STRIPES}") as (daemon,),
        connected(daemon.endpoint, [table], Who()) as pservers,
    ):
        for ids in batches_of_ids(BATCH_ROWS):
            push(pservers, {"table": rows_of(ids)})
        before = resident_bytes(daemon.pid)
        for ids in batches_of_ids(rows):
            push(pservers, {"table": rows_of(ids)})
        grown = resident_bytes(daemon.pid) - before
        spec = pservers.plan.sparse[0]
    predicted = sparse_footprint(spec, rows, STRIPES).total_bytes
    predicted -= sparse_footprint(spec, BATCH_ROWS, STRIPES).total_bytes
    return {
        "rows": rows,
        "measured_bytes_per_row": round(grown / rows, 1),
        "predicted_bytes_per_row": round(predicted / rows, 1),
        "predicted_over_measured": round(predicted / grown, 3),
    }


def batches_of_ids(rows: int) -> Iterator[np.ndarray]:
    """Ids 0 … rows − 1, scattered over all of int64 by an odd factor."""
    for first in range(0, rows, BATCH_ROWS):
        numbers = np.arange(first, min(first + BATCH_ROWS, rows), dtype=np.uint64)
        yield (numbers * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def rows_of(ids: np.ndarray) -> SelectedRows:
    """A small gradient for each of `ids`."""
    values = np.full((len(ids), ctr_data.WIDTH), 1e-3, np.float32)
    return SelectedRows(ids, values, unique=True)
