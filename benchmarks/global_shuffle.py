"""Global shuffle among trainer processes: MB/s of records over both carriers.

    python -m benchmarks.global_shuffle --megabytes 200 --trainers 2 --repeat 3

Each trainer makes Criteo-shaped records in memory: label, 13 floats, 26 ragged slots of one id or
two. It waits for the others at a real pserver process, then shuffles with
`ConnectedExecutor.exchange_records`. The parent checks the number of records and the sum of all
words.

    mb_s          bytes of all records ÷ time of the slowest trainer
    sent_mb_s     bytes of the records that change their trainer ÷ that time
    further_peak  peak memory of a shuffle, without the records, ÷ bytes of the records
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import deque

import numpy as np

import psrt
from benchmarks.measuring import processes
from benchmarks.measuring.harness import Figures, main, pservers
from psrt import layers
from psrt.core.specs.modes import Async
from psrt.core.tensors import Ragged
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.records import Layout, Records
from psrt.data.datasets.scattering import BATCH_RECORDS, Scattering
from psrt.data.slots import Batch, Slot
from psrt.kernels import jit
from psrt.partition.transpiler import DistributeTranspiler, TrainerProgram
from psrt.trainer.training.connected import ConnectedExecutor

CATEGORIES, NUMBERS, PIECE_ROWS = 26, 13, 2048
SLOTS = (
    Slot("label", "uint64", 1),
    Slot("numbers", "float", NUMBERS),
    *(Slot(f"c{i}", "uint64") for i in range(CATEGORIES)),
)
LIMIT_S = 300.0


def piece(rng: np.random.Generator) -> Batch:
    batch: Batch = {
        "label": rng.integers(0, 2, (PIECE_ROWS, 1)),
        "numbers": rng.standard_normal((PIECE_ROWS, NUMBERS), "f"),
    }
    for i in range(CATEGORIES):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 3, PIECE_ROWS))])
        batch[f"c{i}"] = Ragged(rng.integers(0, 1 << 40, offsets[-1]), offsets)
    return batch


def records_of(trainer: int, megabytes: int, layout: Layout) -> deque[Records]:
    rng, packer, size = np.random.default_rng(trainer), Packer(layout), 0
    pieces: deque[Records] = deque()
    while size < megabytes * 1_000_000:
        pieces.append(packer.pack(piece(rng)))
        size += pieces[-1].memory_bytes
    return pieces


def checksum(pieces: deque[Records]) -> int:
    """A sum of all words, equal for any order of records."""
    return sum(int(part.words.sum(dtype=np.uint64)) for part in pieces) % (1 << 64)


def part_of(trainer: int, trainers: int, endpoint: str) -> TrainerProgram:
    with psrt.program() as program:
        loss = layers.mean(layers.fc(layers.data("x", shape=(2,)), 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    transpiler = DistributeTranspiler()
    transpiler.transpile(program, trainer, [endpoint], trainers, Async())
    return transpiler.get_trainer_program()


def train(args: argparse.Namespace) -> None:
    """Run one trainer; prints its figures as a line of JSON."""
    layout = Layout(SLOTS)
    pieces = records_of(args.trainer, args.megabytes, layout)
    before = {"records": sum(map(len, pieces)), "sum": checksum(pieces)}
    size = sum(part.memory_bytes for part in pieces)
    part = part_of(args.trainer, args.trainers, args.endpoint)
    with ConnectedExecutor(part, carrier=args.carrier, call_timeout_s=LIMIT_S) as executor:
        jit.warm_up(("data",))
        executor.barrier("ready")
        first_peak = processes.peak_resident_bytes()
        scattering = Scattering(layout, pieces, batch_records=args.batch_records, seed=1)
        started = time.perf_counter()
        after = executor.exchange_records(scattering)
        seconds = time.perf_counter() - started
        peak = processes.peak_resident_bytes()
    figures = {"bytes": size, "seconds": seconds, "before": before}
    figures["after"] = {"records": sum(map(len, after)), "sum": checksum(after)}
    figures["further_peak_bytes"] = peak - first_peak
    print(json.dumps(figures))


def run(args: argparse.Namespace) -> Figures:
    return {carrier: shuffled(args, carrier) for carrier in args.carriers}


def shuffled(args: argparse.Namespace, carrier: str) -> Figures:
    with pservers(1) as (endpoint,):
        trainers = [start(args, carrier, i, endpoint) for i in range(args.trainers)]
        told = [trainer.communicate(timeout=2 * LIMIT_S)[0] for trainer in trainers]
    if failed := [i for i, trainer in enumerate(trainers) if trainer.returncode]:
        raise SystemExit(f"trainers {failed} failed")
    found = [json.loads(lines.splitlines()[-1]) for lines in told]
    for what in ("records", "sum"):
        before, after = (sum(f[side][what] for f in found) for side in ("before", "after"))
        if (before - after) % (1 << 64):
            raise SystemExit(f"{what}: {before} before the shuffle, {after} after")
    size, seconds = sum(f["bytes"] for f in found), max(f["seconds"] for f in found)
    return {
        "records": sum(f["after"]["records"] for f in found),
        "mb": size / 1e6,
        "seconds": seconds,
        "mb_s": size / seconds / 1e6,
        "sent_mb_s": size / seconds / 1e6 * (args.trainers - 1) / args.trainers,
        "further_peak": max(f["further_peak_bytes"] / f["bytes"] for f in found),
    }


def start(
    args: argparse.Namespace, carrier: str, trainer: int, endpoint: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.global_shuffle", "--trainer", str(trainer)]
    command += ["--endpoint", endpoint, "--carrier", carrier, "--trainers", str(args.trainers)]
    command += ["--megabytes", str(args.megabytes), "--batch-records", str(args.batch_records)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--megabytes", type=int, default=200, help="of each trainer")
    options.add_argument("--trainers", type=int, default=2)
    options.add_argument("--batch-records", type=int, default=BATCH_RECORDS)
    options.add_argument("--carriers", nargs="+", default=["stream", "grpc"])
    options.add_argument("--trainer", type=int, help="its number (set by the benchmark)")
    options.add_argument("--endpoint", help=argparse.SUPPRESS)
    options.add_argument("--carrier", help=argparse.SUPPRESS)
    return options


if __name__ == "__main__":
    if "--trainer" in sys.argv:
        train(parser().parse_args())
    else:
        main(parser(), run)
