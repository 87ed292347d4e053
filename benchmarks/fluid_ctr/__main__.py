"""A CTR-DNN through Fluid's API beside psrt's own: accuracy and speed in every mode.

    python -m benchmarks.fluid_ctr train.tsv.gz [--modes sync,async,half_async,geo] [--rounds 3]
                                   [--sides fluid,twin,criteo] [--range 0.01] [--zoo DIR]

`train.tsv.gz` is a table as Criteo published it. *fluid* is the network of PaddlePaddle's model zoo
in `network.py`, trained by `fleet` and `train_from_dataset`; with `--zoo`, the class `CTR` of
`DIR/network_conf.py`, a copy of the zoo's folder `ctr/dnn`. *twin* is
`examples/criteo/model_zoo.toml`, the network in psrt's words; *criteo* is
`examples/criteo/criteo.toml` with this width, rate and Adam, another network. Rows begin between
±`--range`, of the zoo's class between ±1, in *criteo* between ±0.01. All have equal rows, ids,
batches, rates and numbers of processes, one BLAS thread each. Sides take turns;
each figure is that of one round, and ratios are medians of rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fluid_ctr import clicks, sides
from benchmarks.fluid_ctr.settings import Settings
from benchmarks.measuring import harness

MODES = "sync", "async", "half_async", "geo"
NEAR, FAST = 0.002, 0.9


def run(args: argparse.Namespace) -> harness.Figures:
    """Return the figures of every mode and side."""
    trainers = dict(sides.SIDES)
    trainers["fluid"] = partial(sides.fluid, zoo=args.zoo)
    wanted = {name: trainers[name] for name in args.sides.split(",")}
    with tempfile.TemporaryDirectory(prefix="psrt-fluid-ctr-") as scratch:
        folder = Path(scratch)
        clicks.write(args.table, folder)
        rows, found = clicks.tests(folder), {}
        for mode in args.modes.split(","):
            settings = Settings(mode, args.range, args.rate, args.batch, args.epochs)
            each: dict[str, list[harness.Figures]] = {name: [] for name in wanted}
            for number in range(args.rounds):
                for name, train in wanted.items():
                    out = folder / f"{mode}-{number}-{name}"
                    out.mkdir()
                    figures = train(settings, folder, out) | sides.accuracy(out / "model", rows)
                    each[name].append(figures)
                    print(mode, number, name, json.dumps(figures), file=sys.stderr, flush=True)
            found[mode] = {name: _columns(runs) for name, runs in each.items()}
            found[mode] |= _compared(found[mode])
    return {
        "workload": "fluid_ctr",
        "range": args.range,
        "rate": args.rate,
        "batch": args.batch,
        "modes": found,
    }


def _columns(runs: list[harness.Figures]) -> harness.Figures:
    return {name: [figures[name] for figures in runs] for name in runs[0]}


def _compared(found: dict[str, Any]) -> harness.Figures:
    """Fluid beside each other side: distance of mean AUCs, and the ratio of speeds."""
    made: harness.Figures = {}
    for other in ("twin", "criteo"):
        if other in found and "fluid" in found:
            speeds = (found[name]["examples_per_s"] for name in ("fluid", other))
            ratio = statistics.median(a / b for a, b in zip(*speeds, strict=True))
            away = statistics.mean(found["fluid"]["auc"]) - statistics.mean(found[other]["auc"])
            made[f"beside_{other}"] = {
                "auc_minus": round(away, 5),
                "speed": round(ratio, 3),
                "as_claimed": abs(away) <= NEAR and ratio >= FAST,
            }
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path, help="Criteo's train.tsv, plain or .gz")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--sides", default=",".join(sides.SIDES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--range", type=float, default=Settings.range)
    parser.add_argument("--rate", type=float, default=Settings.rate)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--zoo", type=Path, default=None)
    harness.main(parser, run)
