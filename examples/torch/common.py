"""Arguments, sessions, files and metrics that the examples share."""

from __future__ import annotations

import argparse
import gzip
import itertools
from collections.abc import Callable, Iterator, Sequence
from glob import glob
from typing import Any

import torch

import psrt.torch as pt


def arguments(given: Sequence[str] | None, about: str, steps: int) -> argparse.Namespace:
    """Parse the command line; `steps` is the default of --steps."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("train", help="files to train on, a pattern; .gz is read, too")
    parser.add_argument("test", help="files to test on")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--endpoints", help="pservers, host:port,host:port; without: this process")
    parser.add_argument("--mode", default="sync", help="mode with pservers (sync)")
    return parser.parse_args(given)


def session(args: argparse.Namespace) -> pt.TableSession:
    """Return tables on the pservers of the command line, or in this process."""
    torch.manual_seed(1)
    return pt.connect(args.endpoints, args.mode) if args.endpoints else pt.local(seed=1)


class Lines(torch.utils.data.IterableDataset):
    """Lines of the files that match `pattern`, one after the other, `epochs` times."""

    def __init__(self, pattern: str, epochs: int | None = 1) -> None:
        self.paths, self.epochs = sorted(glob(pattern)), epochs
        if not self.paths:
            raise SystemExit(f"{pattern} matches no file")

    def __iter__(self) -> Iterator[str]:
        for _ in itertools.count() if self.epochs is None else range(self.epochs):
            for path in self.paths:
                with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
                    yield from lines


def batches(
    pattern: str, args: argparse.Namespace, collate: Callable[[list[str]], Any], test: bool = False
) -> Any:
    """Batches of --steps steps, or of all test files once; `collate` parses the lines of one."""
    lines = Lines(pattern, 1 if test else None)
    loader = torch.utils.data.DataLoader(lines, args.batch_size, collate_fn=collate)
    return loader if test else Steps(loader, args.steps)


class Steps:
    """The first `steps` batches of a loader."""

    def __init__(self, loader: Any, steps: int) -> None:
        self.loader, self.steps = loader, steps

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self.loader, self.steps)


def multislot(line: str) -> list[list[str]]:
    """Return the values of each slot of a line of `make_data.py`: a count, then as many values."""
    words, slots = iter(line.split()), []
    for count in words:
        slots.append(list(itertools.islice(words, int(count))))
    return slots


def numbers(lists: Sequence[Sequence[str]], at: int = 0) -> torch.Tensor:
    """Return value `at` of each list as int64 (n,)."""
    return torch.tensor([int(values[at]) for values in lists])


def auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the part of pairs of a clicked and another row that the scores put in order."""
    ranks = torch.empty(len(scores), dtype=torch.float64)
    ranks[scores.argsort()] = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    clicked = labels > 0.5
    positives, negatives = int(clicked.sum()), int((~clicked).sum())
    above = ranks[clicked].sum() - positives * (positives + 1) / 2
    return float(above / max(1, positives * negatives))
