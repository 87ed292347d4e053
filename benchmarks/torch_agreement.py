"""Four models in psrt and in PyTorch: difference of parameters, and steps per second of each.

    python -m benchmarks.torch_agreement [--models …] [--optimizers …] [--steps N] [--seconds S]

Both sides begin with equal parameters and train on equal batches, with one thread each. After
`steps` steps all parameters are compared: max |a − b| / max |b|, of which the largest is printed.
Then both speeds are measured in turn, `rounds` times, so that a busy host slows both. Figures are
medians; `ratio` is the median of psrt's steps per second ÷ torch's within a round.

Both compute in float32 and add in different orders. Rounding may open a ReLU on one side only, or
choose another maximum of a window; gradients then differ from there on. This is rare over few
steps. tests/peers also compares in float64, without such cases.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

if TYPE_CHECKING:
    from benchmarks.peers.torch_sides import PsrtSide, TorchSide

MODELS = ("mlp", "deepfm", "word2vec", "conv")
OPTIMIZERS = ("sgd", "adagrad", "adam", "lazy_adam")
WITH_TABLES = ("deepfm", "word2vec")
TOLERANCE = 1e-5


def run(args: argparse.Namespace) -> harness.Figures:
    import torch

    torch.set_num_threads(1)
    figures = {
        f"{model} {optimizer}": compare(model, optimizer, args)
        for model in args.models
        for optimizer in args.optimizers
        if optimizer != "lazy_adam" or model in WITH_TABLES
    }
    compared = [each["largest_difference"] for each in figures.values()]
    return {
        "workload": f"psrt beside torch {torch.__version__}, one thread, {args.steps} steps",
        "tolerance": TOLERANCE,
        "agree": all(each <= TOLERANCE for each in compared if each is not None),
        "models": figures,
    }


def compare(name: str, optimizer: str, args: argparse.Namespace) -> harness.Figures:
    """The figures of one model with one optimizer."""
    from benchmarks.peers.torch_models import MODELS
    from benchmarks.peers.torch_sides import TWINS, PsrtSide, TorchSide, differences

    model, twin = MODELS[name](), TWINS[optimizer]
    ours = PsrtSide(model, twin, args.steps)
    theirs = TorchSide(model, twin, ours.parameters())
    for feed in ours.feeds:
        ours.step(feed)
        theirs.step(feed)
    away = differences(ours.parameters(), theirs.parameters())
    worst = max(away, key=lambda parameter: away[parameter])
    agreement = {"largest_difference": float(f"{away[worst]:.1e}"), "of": worst}
    if not twin.must_agree:
        agreement = {"largest_difference": None}
    return agreement | speeds(ours, theirs, args)


def speeds(ours: PsrtSide, theirs: TorchSide, args: argparse.Namespace) -> harness.Figures:
    """Steps per second of both sides, measured in turn."""
    rounds = [
        [steps_per_s(side, ours, args.seconds) for side in (ours, theirs)]
        for _ in range(args.rounds)
    ]
    psrt_per_s, torch_per_s = (statistics.median(side) for side in zip(*rounds, strict=True))
    ratio = statistics.median(mine / other for mine, other in rounds)
    return {
        "steps_per_s": {"psrt": round(psrt_per_s, 1), "torch": round(torch_per_s, 1)},
        "ratio": round(ratio, 2),
    }


def steps_per_s(side: PsrtSide | TorchSide, ours: PsrtSide, seconds: float) -> float:
    feeds = ours.feeds
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        side.step(feeds[steps % len(feeds)])
        steps += 1
    return steps / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=OPTIMIZERS)
    parser.add_argument("--steps", type=int, default=20, help="before parameters are compared")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: pip install -e .[torch]", file=sys.stderr)
        sys.exit(2)
    harness.main(parser, run)


if __name__ == "__main__":
    main()
