"""W1: a CTR network, trained by real pserver and trainer processes from data in memory.

    python -m benchmarks.w1_ctr --mode sync|async|ssp|half_async|geo
                                [--optimizer sgd|adagrad|adam] [--seconds 15]
                                [--carrier stream|grpc] [--wire float32|float16|bfloat16|int8]
                                [--scheduling normal|batch] [--pservers 2] [--trainers 2]
                                [--update-frequency 400]
                                [--durability none|cut|delta|replica] [--no-marks] [--observed]
                                [--no-gemm] [--repeat N]

`--update-frequency` is the number of steps between two exchanges of geo; its peer uses 400, too.
With `--durability` cut or delta, pservers write cuts every 30 s to a temporary directory. Steps are
marked as `psrt trainer` marks them, so that a successor can go on; `--no-marks` leaves it out.
Without gemm (`--no-gemm`) a run is shorter, and lacks the figures of matrix products.
With `--observed` all processes serve metrics, which somebody reads, and write JSON logs.

    examples_per_s           total of all trainers after 20 warm-up steps
    gemm_examples_per_s      total of as many processes that compute only the network's matrix
                             products, measured in the same run, unless --no-gemm
    loss_at_250_steps        mean training loss of steps 200 to 250, averaged over the trainers
    bytes_per_step           bytes of the tensors that a trainer sends and receives
    trainer_cpu_ms_per_step  CPU time of one trainer for one of its steps
    pserver_cpu_ms_per_step  CPU time of all pservers for one step of one trainer
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.measuring import harness, onlooker, processes
from benchmarks.measuring.onlooker import Onlooker
from benchmarks.workloads import ctr_data
from benchmarks.workloads.gemm import gemm_figures
from psrt.communicator.base import Communicator, Position, no_position
from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core import log
from psrt.core.precision import PRECISIONS, WirePrecision
from psrt.core.service_manager import ServiceReporter
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.core.threads import SCHEDULING
from psrt.data.reading import Ahead
from psrt.trainer.inputs.job import Job, load_job
from psrt.trainer.inputs.outputs import Outputs
from psrt.trainer.inputs.prefetch import PreparedBatch, prepare
from psrt.trainer.inputs.state import Reached
from psrt.trainer.observing import observed
from psrt.trainer.sessions import run_of
from psrt.trainer.training.cluster import cluster_of
from psrt.trainer.training.process import prepared_process
from psrt.trainer.training.training_run import TrainingRun

WARM_UP_STEPS, GEMM_SECONDS = 20, 4.0
LEARNING_RATES = {"sgd": (0.1, 50.0), "adagrad": (0.02, 2.5), "adam": (1e-3, 1.0)}
"""The peers' rates: of dense parameters, and the factor for the table."""
MODES: dict[str, CommunicationMode] = {
    "sync": Sync(),
    "async": Async(),
    "ssp": Ssp(),
    "half_async": HalfAsync(),
    "geo": Geo(),
}


def run(args: argparse.Namespace) -> harness.Figures:
    flags = [f"--{name}={getattr(args, name)}" for name in ("mode", "optimizer", "carrier", "wire")]
    flags += [f"--seconds={args.seconds}", f"--trainers={args.trainers}"]
    flags += [f"--durability={args.durability}", *["--no-marks"] * args.no_marks]
    flags.append(f"--update-frequency={args.update_frequency}")
    gemm = [] if args.no_gemm else harness.together("w1_ctr", [["--as-gemm"]] * args.trainers)
    scheduling = f"--scheduling={args.scheduling or scheduling_of(args.mode)}"
    pages = onlooker.free_addresses(args.trainers) if args.observed else [""] * args.trainers
    seen = ("--metrics", "127.0.0.1:0", *onlooker.FLAGS) if args.observed else ()
    with (
        tempfile.TemporaryDirectory(prefix="psrt-bench-cuts-") as cuts,
        harness.daemons(args.pservers, scheduling, *cut_flags(args, cuts), *seen) as daemons,
        Onlooker([d.metrics for d in daemons] + pages if args.observed else []) as looked,
    ):
        where = f"--endpoints={','.join(daemon.endpoint for daemon in daemons)}"
        roles = [
            [*flags, scheduling, where, f"--as-trainer={t}", f"--metrics={pages[t]}"]
            for t in range(args.trainers)
        ]
        cpu_s = -sum(processes.cpu_s(daemon.pid) for daemon in daemons)
        trained = harness.together("w1_ctr", roles)
        cpu_s += sum(processes.cpu_s(daemon.pid) for daemon in daemons)
    ceiling = sum(figures["examples_per_s"] for figures in gemm)
    total = sum(figures["examples_per_s"] for figures in trained)
    steps = sum(figures["steps"] for figures in trained)
    losses = [f["loss_at_250_steps"] for f in trained if f["loss_at_250_steps"] is not None]
    return {
        "workload": "W1",
        "mode": args.mode,
        "optimizer": args.optimizer,
        "carrier": args.carrier,
        "wire": args.wire,
        "durability": args.durability,
        "marks": not args.no_marks,
        "pages_read": looked.pages,
        "pservers": args.pservers,
        "trainers": args.trainers,
        "scheduling": args.scheduling or scheduling_of(args.mode),
        "examples_per_s": round(total),
        "gemm_examples_per_s": round(ceiling),
        "share_of_gemm": round(total / ceiling, 3) if gemm else None,
        "loss_at_250_steps": round(float(np.mean(losses)), 4) if losses else None,
        "steps": steps,
        "bytes_per_step": round(mean(trained, "bytes_per_step")),
        "trainer_cpu_ms_per_step": mean(trained, "cpu_ms_per_step"),
        "pserver_cpu_ms_per_step": round(cpu_s / (steps + WARM_UP_STEPS * args.trainers) * 1e3, 2),
        "gemm_cpu_ms_per_step": mean(gemm, "cpu_ms_per_step") if gemm else None,
    }


def cut_flags(args: argparse.Namespace, directory: str) -> list[str]:
    """Flags of pservers by which a job can be durable."""
    if args.durability in ("none", "replica"):
        return []
    return [f"--checkpoint-dir={directory}", "--checkpoint-every-s=30"]


def mode_of(args: argparse.Namespace) -> CommunicationMode:
    return Geo(args.update_frequency) if args.mode == "geo" else MODES[args.mode]


def scheduling_of(mode: str) -> str:
    """The advice of docs/explanation/semantics.md for trainers and pservers on shared cores."""
    return "batch" if mode in ("async", "ssp") else "normal"


def mean(figures: list[harness.Figures], name: str) -> float:
    return round(float(np.mean([each[name] for each in figures])), 2)


class Stopwatch:
    """Counts steps and ends the run after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = self._ended = 0.0
        self._cpu_started = self._cpu_ended = 0.0
        self.losses: list[float] = []
        self.is_over = threading.Event()

    def step(self, loss: float) -> None:
        self.losses.append(loss)
        self._ended = time.perf_counter()
        if len(self.losses) == WARM_UP_STEPS:
            self._started, self._cpu_started = self._ended, time.process_time()
        elif len(self.losses) > WARM_UP_STEPS and self._ended - self._started > self._seconds:
            self.is_over.set()
            self._cpu_ended = time.process_time()  # up to 0.1 ms on a guest: not in each step

    def numbers(self) -> dict[str, float | None]:
        """Counts for the pages of a trainer."""
        steps = len(self.losses)
        loss = self.losses[-1] if steps else None
        return {
            "steps": steps,
            "examples": steps * ctr_data.BATCH,
            "epoch": 1,
            "loss": loss,
            "auc": None,
        }

    def figures(self) -> harness.Figures:
        steps = len(self.losses) - WARM_UP_STEPS
        window = self.losses[200:250]
        return {
            "steps": steps,
            "cpu_ms_per_step": (self._cpu_ended - self._cpu_started) / steps * 1e3,
            "examples_per_s": steps * ctr_data.BATCH / (self._ended - self._started),
            "loss_at_250_steps": float(np.mean(window)) if len(window) == 50 else None,
        }


def trainer(args: argparse.Namespace) -> harness.Figures:
    batches = ctr_data.w1_batches(args.as_trainer, 1500)
    rate, scale = LEARNING_RATES[args.optimizer]
    config = JobConfig(
        name="w1",
        program="workloads/w1_job.py",
        params={"optimizer": args.optimizer, "learning_rate": rate, "embedding_rate": scale},
        communication=mode_of(args),
        wire=WirePrecision(args.wire),
        durability=args.durability,
        path=str(Path(__file__)),
    )
    settings = TrainerConfig(
        endpoints=tuple(args.endpoints.split(",")),
        trainers=args.trainers,
        trainer_id=args.as_trainer,
        carrier=args.carrier,
        scheduling=args.scheduling,
    )
    say = lambda text: print(text, file=sys.stderr)  # noqa: E731
    log.configure(f"trainer-{args.as_trainer}", "info", form="json" if args.metrics else "text")
    with prepared_process(settings, say):
        job = load_job(config)
        run, mode = run_of(settings, job), config.communication
        with closing(cluster_of(settings, job, say, run.local_parameters(mode))) as cluster:
            marks, watch = not args.no_marks, Stopwatch(args.seconds)
            with observed(args.metrics, ServiceReporter()) as watchers:
                labels = config.name, args.mode, str(args.as_trainer)
                watchers.begin(labels, run.spans, cluster.communicator, watch.numbers)
                return measure(job, run, cluster.communicator, batches, watch, marks)


def measure(
    job: Job,
    run: TrainingRun,
    communicator: Communicator,
    batches: list[ctr_data.Batch],
    watch: Stopwatch,
    marks: bool,
) -> harness.Figures:
    outputs = Outputs(job.model)
    run.open(communicator, 60.0)
    with Ahead(prepared(job, batches), 2) as ahead:
        run.run_from(
            ahead,
            outputs.names,
            lambda batch, following, fetched: watch.step(outputs.read(fetched).loss),
            stop=watch.is_over,
            position=marking(communicator) if marks else None,
        )
    counted = communicator.counters.snapshot()
    communicator.stop(60.0)
    moved = counted["push_bytes"] + counted["pull_bytes"]
    return watch.figures() | {"bytes_per_step": moved / len(watch.losses)}


def marking(communicator: Communicator) -> Callable[..., Position]:
    """Marks of the steps, as long as those of `psrt trainer`."""
    steps = itertools.count(1)
    communicator.marks(Reached().mark())

    def mark(*step: object) -> Position:
        communicator.marks(Reached(steps=next(steps)).mark())
        return no_position

    return mark


def prepared(job: Job, batches: list[ctr_data.Batch]) -> Iterator[PreparedBatch]:
    for ids, dense, click in itertools.cycle(batches):
        yield prepare({"ids": ids, "dense": dense, "click": click}, job.tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mode", choices=tuple(MODES), default="async")
    parser.add_argument("--optimizer", choices=tuple(LEARNING_RATES), default="sgd")
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    parser.add_argument("--wire", choices=PRECISIONS, default="float32")
    parser.add_argument("--scheduling", choices=SCHEDULING, default=None)
    parser.add_argument("--update-frequency", type=int, default=400, metavar="STEPS")
    parser.add_argument("--durability", choices=("none", "cut", "delta", "replica"), default="none")
    parser.add_argument("--no-gemm", action="store_true")
    parser.add_argument("--no-marks", action="store_true")
    parser.add_argument("--observed", action="store_true")
    parser.add_argument("--metrics", default="", help=argparse.SUPPRESS)
    parser.add_argument("--pservers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--endpoints", default="", help=argparse.SUPPRESS)
    parser.add_argument("--as-trainer", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--as-gemm", action="store_true", help=argparse.SUPPRESS)
    known, _ = parser.parse_known_args()
    if known.as_gemm:
        print(json.dumps(gemm_figures(GEMM_SECONDS)))
    elif known.as_trainer is not None:
        print(json.dumps(trainer(known)))
    else:
        harness.main(parser, run)
