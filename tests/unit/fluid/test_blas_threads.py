"""Number of BLAS threads of a program's process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNT = """
import psrt.fluid as fluid
from psrt.kernels.lowlevel import thread_counts
fluid.Executor()
print(*{count() for count in thread_counts()})
"""


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "1"),
        ({"OMP_NUM_THREADS": "2"}, "2"),
        ({"PSRT_TRAINER_CPU_THREADS": "2"}, "2"),
        ({"OMP_NUM_THREADS": "many"}, "1"),
    ],
)
def test_a_program_computes_with_one_blas_thread_unless_it_asks_for_more(
    asked: dict[str, str], expected: str
) -> None:
    kept = {n: v for n, v in os.environ.items() if "NUM_THREADS" not in n and "PSRT_" not in n}

    made = subprocess.run(
        [sys.executable, "-c", COUNT], env=kept | asked, capture_output=True, text=True, check=True
    )

    assert made.stdout.split() == [expected]
