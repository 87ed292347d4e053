"""Rows of Criteo as MultiSlot files: one order of slots for each side, equal ids and numbers.

A tenth of the rows is held back for tests. An id is that of `psrt data criteo`, modulo the height
of the table.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.fluid_ctr.settings import DENSE, HEIGHT, SLOTS
from psrt.core.types import Array

FILES = 4
PSRT, FLUID = "psrt", "fluid"
"""Folders: slots as examples/ctr_dnn declares them, and as the model zoo does."""


def write(table: Path, out: Path) -> None:
    """Convert `table`, a train.tsv of Criteo, to files below `out`."""
    flags = ["--out", str(out / "whole"), "--files", str(FILES), "--test-fraction", "0.1"]
    command = [sys.executable, "-m", "psrt", "data", "criteo", str(table), *flags]
    subprocess.run(command, check=True, stdout=sys.stderr)
    for folder in (PSRT, FLUID):
        (out / folder).mkdir()
    for path in sorted((out / "whole").glob("t*-*.txt")):
        rows = list(_rows(path))
        _write(out / PSRT / path.name, (f"1 {click} {dense} {ids}" for click, dense, ids in rows))
        _write(out / FLUID / path.name, (f"{dense} {ids} 1 {click}" for click, dense, ids in rows))


def tests(out: Path) -> dict[str, Array]:
    """Return the rows for tests: dense (n, 13), ids (n, 26) and click (n,)."""
    lines = [
        np.array(line.split(), np.float64)
        for path in sorted((out / PSRT).glob("test-*"))
        for line in path.read_text().splitlines()
    ]
    table = np.stack(lines)
    dense, ids = table[:, 3 : 3 + DENSE], table[:, 3 + DENSE :]
    return {
        "dense": dense.astype(np.float32),
        "ids": ids[:, 1::2].astype(np.int64),
        "click": table[:, 1].astype(np.int64),
    }


def _rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """The click, and the slots of dense numbers and of ids, of each line."""
    for line in path.read_text().splitlines():
        words = line.split()
        ids = [f"1 {int(words[at]) % HEIGHT}" for at in range(4 + DENSE, len(words), 2)]
        assert len(ids) == SLOTS
        yield words[1], " ".join(words[2 : 3 + DENSE]), " ".join(ids)


def _write(path: Path, lines: Iterator[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))
