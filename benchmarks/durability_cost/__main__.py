"""Cost of the `durability` of a job: W1 with each kind, in turn.

    python -m benchmarks.durability_cost [--kinds none,cut,delta,replica] [--rounds 5]
                                         [--mode async] [--optimizer adagrad] [--seconds 15]

runs `benchmarks.w1_ctr` once per kind and round; the order changes from round to round.

    examples_per_s     of each kind, median of the rounds
    share              of the rate of `none` in the same round, median
    cpu_ms_per_step    of one trainer and of all pservers for a step, median: steadier on a busy
                       host; `cpu_share` is that of `none` ÷ it, median
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from benchmarks.measuring import harness

KINDS = ("none", "cut", "delta", "replica")
TIMEOUT_S = 600.0


def run(args: argparse.Namespace) -> harness.Figures:
    kinds = args.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise SystemExit(f"there is no kind {min(unknown)}; there are {', '.join(KINDS)}")
    flags = [f"--{name}={getattr(args, name)}" for name in ("mode", "optimizer", "seconds")]
    rounds = list[dict[str, harness.Figures]]()
    for number in range(args.rounds):
        order = [*kinds[number % len(kinds) :], *kinds[: number % len(kinds)]]
        rounds.append({kind: trained(kind, flags) for kind in order})
    settings = {"mode": args.mode, "optimizer": args.optimizer, "rounds": args.rounds}
    return {"workload": "durability", **settings} | figures(kinds, rounds)


def trained(kind: str, flags: Sequence[str]) -> harness.Figures:
    child = harness.start("w1_ctr", [*flags, f"--durability={kind}"])
    return harness.figures_of(child, TIMEOUT_S)


def figures(
    kinds: Sequence[str], rounds: Sequence[dict[str, harness.Figures]]
) -> dict[str, harness.Figures]:
    """Medians per kind; shares of `none`, if it is among the kinds."""
    found = dict[str, harness.Figures]()
    for kind in kinds:
        own = found[kind] = {
            "examples_per_s": round(statistics.median(rate(each[kind]) for each in rounds)),
            "cpu_ms_per_step": round(statistics.median(cpu(each[kind]) for each in rounds), 2),
        }
        if "none" in kinds:
            shares = [rate(each[kind]) / rate(each["none"]) for each in rounds]
            cpu_shares = [cpu(each["none"]) / cpu(each[kind]) for each in rounds]
            own["share"] = round(statistics.median(shares), 3)
            own["cpu_share"] = round(statistics.median(cpu_shares), 3)
    return found


def rate(measured: harness.Figures) -> float:
    return float(measured["examples_per_s"])


def cpu(measured: harness.Figures) -> float:
    return float(measured["trainer_cpu_ms_per_step"] + measured["pserver_cpu_ms_per_step"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--mode", choices=("sync", "async", "ssp", "half_async"), default="async")
    parser.add_argument("--optimizer", choices=("sgd", "adagrad", "adam"), default="adagrad")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    harness.main(parser, run)
