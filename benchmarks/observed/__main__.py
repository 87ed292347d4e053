"""The cost of being looked into: W1 with metrics, JSON logs and polled pages, and without, in turn.

    python -m benchmarks.observed [--pairs 3] [--mode async|sync] [--seconds 8] [--short]

With `on`, all processes serve metrics and write JSON logs. The status of the first pserver is read
once a second, as the page does, and /metrics of all every 5 s. Runs alternate (off on, on off, …),
so that a slow drift of the host hits both. Figures are medians; `pairs` has the quotient of each
pair, whose spread is the noise. --short is two pairs of three seconds, to see that it works.

    rate_ratio  examples per second, on / off, the median of all pairs
    cpu_ratio   CPU time of a step on its trainer, off / on, likewise: less noise on a busy host
    pages       pages read in a run
"""

from __future__ import annotations

import argparse
import statistics

from benchmarks.measuring import harness

TIMEOUT_S = 600.0


def run(args: argparse.Namespace) -> harness.Figures:
    count, seconds = (2, 3.0) if args.short else (args.pairs, args.seconds)
    flags = [f"--mode={args.mode}", f"--seconds={seconds}", "--no-gemm"]
    pairs = [pair(flags, first=number % 2) for number in range(count)]
    off, on = ([each[index] for each in pairs] for index in (0, 1))
    rates = [round(b["examples_per_s"] / a["examples_per_s"], 3) for a, b in pairs]
    cpu = [round(cpu_ms(a) / cpu_ms(b), 3) for a, b in pairs]
    return {
        "workload": "W1 observed",
        "mode": args.mode,
        "off": summary(off),
        "on": summary(on),
        "pairs": {"rate": rates, "cpu": cpu},
        "rate_ratio": statistics.median(rates),
        "cpu_ratio": statistics.median(cpu),
        "pages": min(each["pages_read"] for each in on),
    }


def pair(flags: list[str], first: int) -> tuple[harness.Figures, harness.Figures]:
    """Figures of a run that nobody looks into, and of one that somebody does."""
    found = {}
    for observed in (first, 1 - first):
        more = ["--observed"] * observed
        child = harness.start("w1_ctr", [*flags, *more])
        found[observed] = harness.figures_of(child, TIMEOUT_S)
    return found[0], found[1]


def cpu_ms(figures: harness.Figures) -> float:
    """CPU time of one step on its trainer; that of pservers includes the start of a run."""
    return float(figures["trainer_cpu_ms_per_step"])


def rate(runs: list[harness.Figures]) -> float:
    return statistics.median(each["examples_per_s"] for each in runs)


def summary(runs: list[harness.Figures]) -> harness.Figures:
    cpu = statistics.median(map(cpu_ms, runs))
    return {"examples_per_s": rate(runs), "cpu_ms_per_step": round(cpu, 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--mode", choices=("async", "sync"), default="async")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--short", action="store_true")
    harness.main(parser, run)
