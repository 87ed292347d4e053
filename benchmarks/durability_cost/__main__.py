"""Cost of the `durability` of a job: W1 with each kind, in turn.

    python -m benchmarks.durability_cost [--kinds none,cut,delta,replica] [--rounds 5]
                                         [--mode async] [--optimizer adagrad] [--seconds 15]
                                         [--within-s 0] [--short]

runs `benchmarks.w1_ctr` once per kind and round; the order changes from round to round. With
`--within-s` no run begins that would end later, as far as earlier ones tell. `--short` stands for
none, delta and replica, 4 seconds each, within 80: it ends in less than 90 seconds on two cores.
Only rounds count that have all kinds.

    examples_per_s     of each kind, median of the rounds
    share              of the rate of `none` in the same round, median
    cpu_ms_per_step    of one trainer and of all pservers for a step, median: steadier on a busy
                       host; `cpu_share` is that of `none` ÷ it, median
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.measuring import harness

KINDS = ("none", "cut", "delta", "replica")
SHORT = ("none", "delta", "replica")
TIMEOUT_S = 600.0


def run(args: argparse.Namespace) -> harness.Figures:
    args.seconds = args.seconds or (4.0 if args.short else 15.0)
    args.within_s = args.within_s or (80.0 if args.short else 0.0)
    kinds = (args.kinds or ",".join(SHORT if args.short else KINDS)).split(",")
    if unknown := set(kinds) - set(KINDS):
        raise SystemExit(f"there is no kind {min(unknown)}; there are {', '.join(KINDS)}")
    flags = [f"--{name}={getattr(args, name)}" for name in ("mode", "optimizer", "seconds")]
    rounds = in_time(kinds, args.rounds, args.within_s, lambda kind: trained(kind, flags))
    if not rounds:
        raise SystemExit(f"no round of {len(kinds)} runs ended within {args.within_s:g} s")
    settings = {"mode": args.mode, "optimizer": args.optimizer, "seconds": args.seconds}
    settings |= {"rounds": len(rounds)}
    return {"workload": "durability", **settings} | figures(kinds, rounds)


def in_time(
    kinds: Sequence[str],
    rounds: int,
    within_s: float,
    train: Callable[[str], harness.Figures],
    now: Callable[[], float] = time.monotonic,
) -> list[dict[str, harness.Figures]]:
    """Figures by kind of each complete round; `within_s` 0 = however long they take."""
    began_s, longest_s = now(), 0.0
    found = list[dict[str, harness.Figures]]()
    for number in range(rounds):
        one: dict[str, harness.Figures] = {}
        for kind in [*kinds[number % len(kinds) :], *kinds[: number % len(kinds)]]:
            started_s = now()
            if within_s and started_s - began_s + longest_s > within_s:
                return found
            one[kind] = train(kind)
            longest_s = max(longest_s, now() - started_s)
        found.append(one)
    return found


def trained(kind: str, flags: Sequence[str]) -> harness.Figures:
    child = harness.start("w1_ctr", [*flags, "--no-gemm", f"--durability={kind}"])
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
    parser.add_argument("--kinds", default="")
    parser.add_argument("--mode", choices=("sync", "async", "ssp", "half_async"), default="async")
    parser.add_argument("--optimizer", choices=("sgd", "adagrad", "adam"), default="adagrad")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.0, help="of a run; default 15, short 4")
    parser.add_argument("--within-s", type=float, default=0.0, help="0 = no limit")
    parser.add_argument("--short", action="store_true")
    harness.main(parser, run)
