"""Trainers without pservers as real processes of `psrt trainer`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes import Running, psrt
from tests.support.scripts import endpoints


@contextlib.contextmanager
def group(
    job: Path, logs: Path, trainers: int, *arguments: str, save: Path | None = None
) -> Iterator[list[Running]]:
    """`psrt trainer` for each of `trainers`, with `arguments`; trainer 0 saves to `save`."""
    at = ",".join(endpoints(trainers))
    logs.mkdir(exist_ok=True)
    with contextlib.ExitStack() as running:
        yield [
            running.enter_context(
                psrt(
                    logs / f"trainer-{number}.log",
                    "trainer",
                    *("--trainer-endpoints", at, "--trainers", str(trainers)),
                    *("--trainer-id", str(number), *arguments),
                    *(("--save", str(save)) if save is not None and number == 0 else ()),
                    str(job),
                    OPENBLAS_NUM_THREADS="1",
                )
            )
            for number in range(trainers)
        ]
