"""Test AUC of a training that is stopped twice, and goes on with other numbers of processes.

    python -m benchmarks.resumed_accuracy train.tsv.gz [--mode sync] [--batch 256] [--seed 0]
                                          [--pservers 2,5,3] [--trainers 2,3,1] [--stops 0.1,0.4]

trains `examples/criteo/criteo.toml` on any table as Criteo published it: once to the end by the
first numbers of processes, and once in attempts. An attempt is stopped by SIGTERM behind the first
cut at a share `--stops` of all steps of the whole training; the next one resumes its cut.

    examples    of the rows to train on; of the whole training; of all attempts together
    auc         of the rows that `psrt data criteo` has held back, of both trainings
    difference  of the two; `as_claimed` if it is within 0.002, and each training has trained as
                many examples as there are
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import harness
from benchmarks.resumed_accuracy.attempts import Data, converted, resumed, whole

NEAR, FILES = 0.002, 6


def run(args: argparse.Namespace) -> harness.Figures:
    numbers = list(zip(_numbers(args.pservers), _numbers(args.trainers), strict=True))
    shares = [float(each) for each in args.stops.split(",") if each]
    if len(shares) + 1 != len(numbers):
        raise SystemExit("--stops needs one number less than --pservers and --trainers")
    with tempfile.TemporaryDirectory(prefix="psrt-resumed-") as scratch:
        place = Path(scratch)
        data = Data(place / "data", args.batch, args.mode, args.seed)
        rows = converted(args.table, data.folder, FILES)
        alone = whole(data, place / "whole", numbers[0])
        steps = rows // args.batch // (numbers[0][1] if args.mode == "sync" else 1)
        stops = [int(share * steps) for share in shares]
        attempts = []
        for report in resumed(data, place / "attempts", numbers, stops, max(1, steps // 20)):
            attempts.append(report)
            print(f"trained {report['examples']} of {rows} examples", file=sys.stderr)
    facts = {"workload": "resumed accuracy", "mode": args.mode, "batch": args.batch}
    return facts | figures(rows, alone, attempts)


def figures(
    rows: int, alone: dict[str, Any], attempts: list[dict[str, Any]]
) -> dict[str, harness.Figures]:
    """Both trainings beside each other, by their reports."""
    counts = [int(each["examples"]) for each in attempts]
    difference = float(attempts[-1]["auc"]) - float(alone["auc"])
    are_counted = alone["examples"] == rows == sum(counts)
    return {
        "examples": {"rows": rows, "whole": alone["examples"], "attempts": counts},
        "auc": {"whole": round(alone["auc"], 4), "attempts": round(attempts[-1]["auc"], 4)},
        "difference": round(difference, 4),
        "as_claimed": are_counted and abs(difference) <= NEAR,
    }


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path, help="Criteo's train.tsv, plain or .gz")
    parser.add_argument("--mode", choices=("sync", "async", "ssp", "half_async"), default="sync")
    parser.add_argument("--batch", type=int, default=256, help="examples of one trainer's batch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pservers", default="2,5,3")
    parser.add_argument("--trainers", default="2,3,1")
    parser.add_argument("--stops", default="0.1,0.4", help="shares of all steps")
    harness.main(parser, run)
