"""One trainer of the benchmark of recovery: fills its tables, trains, records when steps end."""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks import w1_ctr
from benchmarks.workloads import ctr_data
from psrt.config.sections import JobConfig, TrainerConfig
from psrt.data.reading import Ahead
from psrt.trainer.inputs.job import Job, load_job
from psrt.trainer.inputs.prefetch import PreparedBatch, prepare
from psrt.trainer.sessions import run_of
from psrt.trainer.training.cluster import cluster_of
from psrt.trainer.training.process import prepared_process

BATCHES, WAIT_S = 64, 60.0
IDS = ctr_data.BATCH * ctr_data.SLOTS
EVENTS = {
    "pserver %s was started again and is sent what it has lost": "met",
    "pserver %s has %d pushes again": "resent",
    "pserver %s is gone; asks %s to serve its part": "deposed",
    "part %d is served by %s, epoch %d": "served",
}


class EventTimes(logging.Handler):
    """Records when this trainer met a recovered pserver, and when it had sent its pushes again."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if name := EVENTS.get(str(record.msg)):
            self.found.append((name, record.created))


def train(args: argparse.Namespace) -> None:
    """Train until the file `stop` exists in `--folder`; writes times to `trainer.N.json` there."""
    folder, events = Path(args.folder), EventTimes()
    logging.getLogger("psrt").addHandler(events)
    job, say = job_of(args), lambda text: print(text, file=sys.stderr)
    settings = TrainerConfig(
        endpoints=tuple(args.endpoints.split(",")),
        trainers=args.trainers,
        trainer_id=args.as_trainer,
        scheduling=w1_ctr.scheduling_of(args.mode),
    )
    filled = folder / f"filled.{args.as_trainer}"
    with prepared_process(settings, say):
        run, mode = run_of(settings, job), job.config.communication
        with closing(cluster_of(settings, job, say, run.local_parameters(mode))) as cluster:
            ends: list[float] = []

            def ended(*_: object) -> None:
                ends.append(time.time())
                if len(ends) == fill_steps(args):
                    filled.touch()

            run.open(cluster.communicator, WAIT_S)
            with Ahead(batches(job, args), 2) as ahead:
                run.run_from(ahead, (), ended, stop=StopFile(folder / "stop"))
            cluster.communicator.stop(WAIT_S)
    found = {"fill_steps": fill_steps(args), "ends": ends, "events": events.found}
    (folder / f"trainer.{args.as_trainer}.json").write_text(json.dumps(found))


class StopFile(threading.Event):
    """An event that is set once a file exists."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def is_set(self) -> bool:
        return self._path.exists()


def job_of(args: argparse.Namespace) -> Job:
    rate, scale = w1_ctr.LEARNING_RATES[args.optimizer]
    return load_job(
        JobConfig(
            name="recovery",
            program="../workloads/w1_job.py",
            params={
                "optimizer": args.optimizer,
                "learning_rate": rate,
                "embedding_rate": scale,
                "rows": max(args.rows, ctr_data.ROWS),
            },
            communication=w1_ctr.MODES[args.mode],
            durability=args.durability,
            path=str(Path(__file__)),
        )
    )


def fill_steps(args: argparse.Namespace) -> int:
    """Steps of each trainer in which every row of the table is trained once."""
    return -(-args.rows // (IDS * args.trainers))


def batches(job: Job, args: argparse.Namespace) -> Iterator[PreparedBatch]:
    """All ids once, spread over the trainers; then W1's batches, repeated.

    With more rows than W1 has, its ids are spread over all of them.
    """
    trained = ctr_data.w1_batches(args.as_trainer, BATCHES)
    _, dense, click = trained[0]
    first = args.as_trainer * fill_steps(args) * IDS
    for step in range(fill_steps(args)):
        ids = np.arange(first + step * IDS, first + (step + 1) * IDS) % args.rows
        whole = ids.reshape(ctr_data.BATCH, ctr_data.SLOTS)
        yield prepare({"ids": whole, "dense": dense, "click": click}, job.tables)
    spread = max(1, args.rows // ctr_data.ROWS)
    for ids, dense, click in itertools.cycle(trained):
        yield prepare({"ids": ids * spread, "dense": dense, "click": click}, job.tables)
