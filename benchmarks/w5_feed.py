"""W5: Criteo-shaped MultiSlot text from the page cache into batches and into memory.

    python -m benchmarks.w5_feed [--queue | --memory | --gzip | --train] [--threads N] [--rows N]
                                 [--ragged] [--batch-size N]

The generator of `synth-ctr` writes about 200 MB of text into four files, plain and gzip. A first
read brings them into the page cache. All parts are measured over all files, except training
(`--train`, see `benchmarks.workloads.w5_train`); a flag selects one part.

    mb_per_s, examples_per_s   QueueDataset: text parsed into batches that are dropped
    mb_per_cpu_s               MB per CPU second of the whole process
    reader_us, trainer_us      CPU time per batch of the reading thread and of the calling thread
    speedup                    speed ÷ speed of one thread in the same run
    speedup_cpu                speed-up on as many free cores, computed from CPU time
    load_mb_per_s              InMemoryDataset.load_into_memory
    joined_mb_per_s            load_into_memory and the preparation of the first pass
    load_speedup               speed-up of loading by `--threads`, measured in turns
    memory_share               bytes of the dataset ÷ bytes of the bare arrays of all batches
    resident_share             growth of the process ÷ bytes of the bare arrays
    pass_examples_per_s        a pass over memory; shuffled_…: after a shuffle
    gzip_share                 speed of reading gzip with one reader and its decompressing thread
                               ÷ speed of `zlib.decompressobj` alone
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import psrt
from benchmarks.measuring.processes import resident_bytes
from benchmarks.workloads import w5_train
from psrt.core.tensors import Ragged
from psrt.data.convert import criteo
from psrt.data.convert.sharded import Destination
from psrt.data.convert.synthetic import Planted, generate
from psrt.data.slots import Batch, Slot, batch_rows

FILES = 4
MB = 1e6
_STORED_BYTES = 64 << 10
TURNS = 7


PARTS = ("queue", "memory", "gzip")


def run(args: argparse.Namespace) -> harness.Figures:
    if args.train:
        return w5_train.run(args)
    parts = [part for part in PARTS if getattr(args, part)] or list(PARTS)
    slots = criteo.slots(ids_per_slot=None if args.ragged else 1)
    with tempfile.TemporaryDirectory(prefix="psrt-w5-") as folder, harness.Steal() as steal:
        plain, zipped = written(Path(folder), args.rows)
        feed = Feed(slots, plain, args.batch_size, args.threads)
        figures: harness.Figures = {"text_mb": round(feed.mb, 1), "threads": args.threads}
        if "queue" in parts:
            figures |= feed.queued()
        if "memory" in parts:
            figures |= feed.in_memory()
        if "gzip" in parts:
            figures |= unzipped(Feed(slots, zipped, args.batch_size, 1), feed.mb)
    return figures | {"stolen_cpu": rounded(steal.share or 0.0)}


def written(folder: Path, rows: int) -> tuple[list[Path], list[Path]]:
    """Write rows as plain and as gzip files, and read each file once."""
    paths = []
    for gzipped in (False, True):
        directory = folder / ("gzip" if gzipped else "plain")
        generate(Planted(rows=rows, test_rows=1), Destination(directory, FILES, gzipped))
        paths.append(sorted(directory.glob("train-*")))
        for path in paths[-1]:
            path.read_bytes()
    return paths[0], paths[1]


class Feed:
    """Datasets over a list of files; `mb` is the size of the files on disk."""

    def __init__(
        self, slots: tuple[Slot, ...], paths: list[Path], batch_size: int, threads: int
    ) -> None:
        self._slots, self.paths = slots, paths
        self._batch_size, self._threads = batch_size, threads
        self.mb = sum(path.stat().st_size for path in paths) / MB

    def queue(self, threads: int) -> psrt.QueueDataset:
        return psrt.QueueDataset(
            self._slots, files=self.paths, batch_size=self._batch_size, threads=threads
        )

    def queued(self) -> harness.Figures:
        dataset = self.queue(self._threads)
        drain(dataset.batches())  # loads kernels
        alone_s, alone_cpu_s, _ = timed(lambda: drain(self.queue(1).batches()))
        thread_started = time.thread_time()
        seconds, cpu_s, rows = timed(lambda: drain(dataset.batches()))
        own_s, batches = time.thread_time() - thread_started, rows / self._batch_size
        return {
            "mb_per_s": rounded(self.mb / seconds),
            "mb_per_cpu_s": rounded(self.mb / cpu_s),
            "examples_per_s": rounded(rows / seconds),
            "reader_us": rounded(1e6 * (cpu_s - own_s) / batches),
            "trainer_us": rounded(1e6 * own_s / batches),
            "speedup": rounded(alone_s / seconds),
            "speedup_cpu": rounded(self._threads * alone_cpu_s / cpu_s),
        }

    def in_memory(self) -> harness.Figures:
        dataset = psrt.InMemoryDataset(
            self._slots, files=self.paths, batch_size=self._batch_size, threads=self._threads
        )
        dataset.load_into_memory()
        bare = sum(map(bare_bytes, dataset.batches()))
        dataset.release_memory()
        before = resident_bytes(os.getpid())
        load_s, load_cpu_s, _ = timed(dataset.load_into_memory)
        join_s, _, records = timed(lambda: len(dataset.memory.records))
        resident = resident_bytes(os.getpid()) - before
        pass_s, _, _ = timed(lambda: drain(dataset.batches()))
        dataset.local_shuffle()
        shuffled_s, _, _ = timed(lambda: drain(dataset.batches()))
        return {
            "load_mb_per_s": rounded(self.mb / load_s),
            "load_mb_per_cpu_s": rounded(self.mb / load_cpu_s),
            "joined_mb_per_s": rounded(self.mb / (load_s + join_s)),
            "load_speedup": rounded(self._load_speedup()),
            "bytes_per_record": rounded(dataset.memory_bytes / records),
            "memory_share": rounded(dataset.memory_bytes / bare),
            "resident_share": rounded(resident / bare),
            "pass_examples_per_s": rounded(records / pass_s),
            "shuffled_pass_examples_per_s": rounded(records / shuffled_s),
        }

    def _load_speedup(self) -> float:
        """The median speed-up of several threads over one, measured in turns."""
        turns = [[self._load_s(threads) for threads in (1, self._threads)] for _ in range(TURNS)]
        return statistics.median(one / several for one, several in turns)

    def _load_s(self, threads: int) -> float:
        dataset = psrt.InMemoryDataset(
            self._slots, files=self.paths, batch_size=self._batch_size, threads=threads
        )
        return timed(dataset.load_into_memory)[0]


def unzipped(feed: Feed, text_mb: float) -> harness.Figures:
    """Speeds of one thread in MB of text, by psrt and by zlib alone."""
    bare_s, bare_cpu_s, _ = timed(lambda: sum(map(bare_gzip, feed.paths)))
    seconds, cpu_s, _ = timed(lambda: drain(feed.queue(1).batches()))
    return {
        "gzip_mb_per_s": rounded(text_mb / seconds),
        "gzip_mb_per_cpu_s": rounded(text_mb / cpu_s),
        "bare_gzip_mb_per_s": rounded(text_mb / bare_s),
        "bare_gzip_mb_per_cpu_s": rounded(text_mb / bare_cpu_s),
        "gzip_share": rounded(bare_s / seconds),
    }


def bare_gzip(path: Path) -> int:
    """Decompress a file and drop its text; returns the bytes of text."""
    member, size = zlib.decompressobj(16 + zlib.MAX_WBITS), 0
    with path.open("rb", buffering=0) as file:
        while stored := file.read(_STORED_BYTES):
            size += len(member.decompress(stored))
    return size


def drain(batches: Iterable[Batch]) -> int:
    return sum(map(batch_rows, batches))


def bare_bytes(batch: Batch) -> int:
    """Bytes of the values of a batch, without offsets."""
    return sum(
        fed.values.nbytes if isinstance(fed, Ragged) else fed.nbytes for fed in batch.values()
    )


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """(seconds, CPU seconds of the process, result) of `work`."""
    started, cpu_started = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - started, time.process_time() - cpu_started, result


def rounded(number: float) -> float:
    return float(f"{number:.4g}")


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="w5_feed", description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=560_000, help="about 360 bytes each")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--ragged", action="store_true", help="ids as lists of any length")
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true", help="measure this alone")
    parser.add_argument("--train", action="store_true", help="train from files and from memory")
    parser.add_argument("--rounds", type=int, default=5, help="of --train")
    return parser


if __name__ == "__main__":
    harness.main(arguments(), run)
