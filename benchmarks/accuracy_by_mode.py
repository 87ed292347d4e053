"""Test AUC by mode: real processes train one network on Criteo's click logs in every mode.

    python -m benchmarks.accuracy_by_mode train.tsv.gz [--modes local,sync,…] [--seeds 3]
                                          [--rows N] [--pservers 2] [--trainers 2]
                                          [--wire float16]

`psrt data criteo` holds back a tenth of the rows, equal for all runs. A seed sets the order of the
others and the initial values. `local` is one trainer without pservers; each of its batches is
divided among the trainers of the other modes. So `sync` differs from it by rounding only. Jobs are
`examples/criteo/<mode>.toml`, or `criteo.toml` in that mode. `auc` has the AUC of the held-back
rows for each seed. With `--wire` every mode except `local` is also trained with tensors that travel
in that precision: `sync/float16`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measuring import harness
from psrt.core.precision import PRECISIONS

JOBS = Path(__file__).resolve().parent.parent / "examples" / "criteo"
PSRT = (sys.executable, "-m", "psrt")
LOCAL, BATCH = "local", 512
MODES = (LOCAL, "sync", "async", "ssp", "half_async", "geo")
NEAR_LOCAL, NEAR_SYNC, NEAR_FLOAT32 = 0.002, 0.005, 0.001
TIMEOUT_S = 1800.0


def run(args: argparse.Namespace) -> harness.Figures:
    modes, aucs = runs_of(args.modes.split(","), args.wire), {}
    with tempfile.TemporaryDirectory(prefix="psrt-accuracy-") as scratch:
        folder = Path(scratch)
        rows = converted(args.table, folder / "criteo", args.rows)
        for seed in range(args.seeds):
            deal(rows, folder, args.trainers, seed)
            for mode in modes:
                aucs.setdefault(mode, []).append(auc_of(mode, folder, seed, args))
                print(f"seed {seed}  {mode:<10}  {aucs[mode][-1]:.4f}", file=sys.stderr)
    found = {mode: figures(mode, aucs) for mode in modes}
    return {"workload": "accuracy", "rows": len(rows), "batch": BATCH, "modes": found}


def runs_of(modes: list[str], wire: str) -> list[str]:
    """The modes, each followed by its run in another wire precision."""
    narrow = {mode: [f"{mode}/{wire}"] for mode in modes if mode != LOCAL and wire != "float32"}
    return [run for mode in modes for run in (mode, *narrow.get(mode, ()))]


def converted(table: Path, out: Path, most: int) -> list[bytes]:
    """The lines of the first `most` rows for training; rows for testing stay in `out`."""
    flags = ["--out", str(out), "--files", "1", "--test-fraction", "0.1"]
    subprocess.run([*PSRT, "data", "criteo", str(table), *flags], check=True, stdout=sys.stderr)
    (path,) = out.glob("train-*")
    with path.open("rb") as lines:
        return list(itertools.islice(lines, most or None))


def deal(rows: list[bytes], folder: Path, trainers: int, seed: int) -> None:
    """Write all rows in random order to `whole.txt`, and those of trainer t to `share-<t>.txt`."""
    order = np.random.default_rng(seed).permutation(len(rows))
    share = BATCH // trainers
    with (folder / "whole.txt").open("wb") as whole:
        whole.writelines(rows[i] for i in order)
    for trainer in range(trainers):
        with (folder / f"share-{trainer}.txt").open("wb") as file:
            for start in range(trainer * share, len(order), BATCH):
                file.writelines(rows[i] for i in order[start : start + share])


def auc_of(run: str, folder: Path, seed: int, args: argparse.Namespace) -> float:
    """Train once; returns the test AUC. Processes log to `folder`."""
    mode, _, wire = run.partition("/")
    report = folder / "report.json"
    command, data = (
        (["trainer", "--local"], ("whole.txt", BATCH))
        if mode == LOCAL
        else (launch(args, folder), ("share-*.txt", BATCH // args.trainers))
    )
    environ = os.environ | {
        "PSRT_JOB_SEED": str(seed),
        "PSRT_DATA_TRAIN": str(folder / data[0]),
        "PSRT_DATA_TEST": str(folder / "criteo" / "test-*"),
        "PSRT_DATA_BATCH_SIZE": str(data[1]),
        "PSRT_COMMUNICATION_WIRE": wire or "float32",
    }
    if not (job := JOBS / f"{mode}.toml").exists():
        job = JOBS / "criteo.toml"
        environ["PSRT_COMMUNICATION_MODE"] = "sync" if mode == LOCAL else mode
    ran = subprocess.run(
        [*PSRT, *command, "--report", str(report), str(job)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    if ran.returncode:
        raise SystemExit(f"{run} ended with {ran.returncode}:\n{ran.stdout}")
    return float(json.loads(report.read_text())["auc"])


def launch(args: argparse.Namespace, folder: Path) -> list[str]:
    numbers = ["--pservers", str(args.pservers), "--trainers", str(args.trainers)]
    return ["launch", *numbers, "--log-dir", str(folder / "logs")]


def figures(mode: str, aucs: dict[str, list[float]]) -> harness.Figures:
    """AUC of each seed, and the distance of its mean from those of `local` and `sync`."""
    means = {other: float(np.mean(found)) for other, found in aucs.items()}
    away = {
        f"minus_{other}": round(means[mode] - means[other], 4)
        for other in (LOCAL, "sync", mode.partition("/")[0])
        if other in means and other != mode
    }
    found = {"auc": [round(auc, 4) for auc in aucs[mode]], "mean": round(means[mode], 4), **away}
    return found | dict(judged(mode, away))


def judged(mode: str, away: dict[str, float]) -> Iterator[tuple[str, bool]]:
    """Comparison of a mode with the claimed distance."""
    wide, _, wire = mode.partition("/")
    if wire:
        yield "as_claimed", abs(away[f"minus_{wide}"]) <= NEAR_FLOAT32
    elif mode == "sync" and "minus_local" in away:
        yield "as_claimed", abs(away["minus_local"]) <= NEAR_LOCAL
    elif mode not in (LOCAL, "sync") and "minus_sync" in away:
        yield "as_claimed", abs(away["minus_sync"]) <= NEAR_SYNC


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path, help="Criteo's train.tsv, plain or .gz")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="of the training part; 0 = all")
    parser.add_argument("--pservers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--wire", choices=PRECISIONS, default="float32")
    harness.main(parser, run)
