"""Array files of a cut against plain sequential files of the same bytes, in the same run.

    python -m benchmarks.cut_files [--mib 512] [--page-kib 4096] [--rounds 6] [--directory DIR]

writes pages of ids and rows with checksums into one file, synced (fsync), and the same number of
bytes plainly; reads both, verified and plainly, from the disk and from its cache. Which one comes
first changes from round to round. Figures are in MB (10⁶ bytes) a second, median and best of the
rounds; a share is the part of the plain figure of the same round, median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measuring.harness import Figures, main
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.local_directory import LocalDirectory

WORDS = 36  # of a row of 16 with Adagrad's state: header, id, weights, state
PLAIN_BYTES = 4 << 20
Rows = list[dict[str, np.ndarray]]


def run(args: argparse.Namespace) -> Figures:
    pages = make_pages(args.mib << 20, args.page_kib << 10)
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        rounds = [one_round(Path(folder), pages, number) for number in range(args.rounds)]
    figures: Figures = {"mib": args.mib, "rounds": args.rounds}
    for kind in rounds[0]:
        for place, what in enumerate(("", "_plain")):
            rates = [each[kind][place] for each in rounds]
            figures[f"{kind}{what}_mb_per_s"] = round(statistics.median(rates), 1)
            figures[f"{kind}{what}_best_mb_per_s"] = round(max(rates), 1)
        shares = [own / plain for own, plain in (each[kind] for each in rounds)]
        figures[f"{kind}_share"] = round(statistics.median(shares), 3)
    return figures


def make_pages(size: int, page_size: int) -> Rows:
    """Four different pages of random numbers, repeated."""
    rng = np.random.default_rng(1)
    n = page_size // (8 + 4 * WORDS)
    several = [
        {"ids": rng.integers(0, 1 << 60, n, np.int64), "rows": rng.random((n, WORDS), np.float32)}
        for _ in range(4)
    ]
    return [several[k % 4] for k in range(max(1, size // page_size))]


def one_round(folder: Path, pages: Rows, number: int) -> dict[str, list[float]]:
    """Rates of psrt and of the plain file, per kind of work."""
    size = sum(a.nbytes for page in pages for a in page.values())
    plain = folder / "plain"
    writes = [lambda: write_cut(folder, pages), lambda: write_plain(plain, size)]
    reads = [lambda: read_cut(folder), lambda: read_plain(plain)]
    figures = {"write": in_turn(size, writes, number)}
    for path in (folder / "cut", plain):
        forget(path)
    figures["read"] = in_turn(size, reads, number)
    figures["read_cached"] = in_turn(size, reads, number)
    for path in (folder / "cut", plain):
        path.unlink()
    return figures


def in_turn(size: int, acts: list[Callable[[], None]], number: int) -> list[float]:
    """Rates of the acts, of which the last one comes first in rounds of odd numbers."""
    order = (1, 0) if number % 2 else (0, 1)
    rates = {place: rate(size, acts[place]) for place in order}
    return [rates[0], rates[1]]


def rate(size: int, act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return size / 1e6 / (time.perf_counter() - started)


def write_cut(folder: Path, pages: Rows) -> None:
    with LocalDirectory(folder).write("cut") as out:
        file = ArrayFileWriter(out)
        for number, page in enumerate(pages):
            file.page({"table": "emb", "shards": [number, number + 1]}, page)
        file.finish()


def write_plain(path: Path, size: int) -> None:
    block = np.random.default_rng(2).bytes(PLAIN_BYTES)
    with path.open("wb", buffering=0) as out:
        for at in range(0, size, PLAIN_BYTES):
            out.write(block[: size - at])
        os.fsync(out.fileno())


def read_cut(folder: Path) -> None:
    with LocalDirectory(folder).read("cut") as file:
        ArrayFileReader(file).verify()


def read_plain(path: Path) -> None:
    block = bytearray(PLAIN_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(block):
            pass


def forget(path: Path) -> None:
    """Drop a file from the cache of the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--page-kib", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--directory", default=".")
    main(parser, run)
