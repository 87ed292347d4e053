"""A job trained by pservers and trainers that a test starts, without the launcher."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.support.processes import psrt
from tests.support.pserver import daemon


def train_by_hand(job: Path, model: Path, pservers: int = 2, trainers: int = 2) -> None:
    """Train a job without faults and save `model`; fails if a process ends with an error."""
    places = [model.parent / f"{model.name}-pserver-{number}" for number in range(pservers)]
    with ExitStack() as stack:
        daemons = []
        for place in places:
            place.mkdir()
            daemons.append(stack.enter_context(daemon(place)))
        given = "--endpoints", ",".join(d.endpoint for d in daemons), "--trainers", str(trainers)
        running = []
        for number in range(trainers):
            saves = ("--save", str(model)) if number == 0 else ()
            flags = *given, "--trainer-id", str(number), *saves
            log = model.parent / f"{model.name}-trainer-{number}.log"
            running.append(stack.enter_context(psrt(log, "trainer", *flags, str(job))))
        for trainer in running:
            assert trainer.exit_code() == 0, trainer.output
        for each in daemons:
            assert each.exit_code() == 0, each.log.read_text()
