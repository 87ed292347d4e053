"""W6: skip-gram word vectors of a text, trained by real pserver and trainer processes.

    python -m benchmarks.w6_word2vec [TEXT[.gz]…] [--mode async|geo|…|local] [--compare]
        [--rate-mbit 200] [--questions questions-words.txt.gz] [--epochs 1] [--sentences N]

Without a text it draws 5 M words by Zipf's law, like the peer's benchmark; these measure speed
only. `words_per_s` is the total of all trainers, without start-up and testing. It counts words that
have a vector, before frequent words are dropped at random (gensim's raw words). `test_loss` is the
loss on pairs of every 50th sentence, which is held back. `mb_per_s` and `bytes_per_word` count the
tensors that trainers send and receive.

`--rate-mbit` gives every process a host of its own, a network namespace with a link of that speed
each way; it needs root. `wire_bytes_per_word` counts all bytes on these links. `--compare` runs
async and geo and prints the figures of both. `--mode local` is one trainer without pservers.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring import harness
from benchmarks.measuring.limited_network import Network, limited
from benchmarks.workloads import word_scores, zipf_text
from psrt.trainer.models import saved_model

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "word2vec"
PSRT = (sys.executable, "-m", "psrt")
LOCAL = "local"
MODES = ("async", "geo", "sync", "ssp", "half_async", LOCAL)
CLAIMED_RATIO = 2.2
TIMEOUT_S = 3600.0


def run(args: argparse.Namespace) -> harness.Figures:
    with tempfile.TemporaryDirectory(prefix="psrt-words-") as scratch:
        example = Path(scratch) / "word2vec"
        texts = args.texts or [zipf_text.written(Path(scratch) / "zipf.txt")]
        words = prepared(example, texts, args) * args.epochs
        modes = ("async", "geo") if args.compare else (args.mode,)
        found = {mode: trained(mode, example, words, args) for mode in modes}
    figures = found | compared(found) if args.compare else {"mode": args.mode, **found[args.mode]}
    return {"workload": "W6", "words": words, **settings(args), **figures}


def settings(args: argparse.Namespace) -> harness.Figures:
    names = ("pservers", "trainers", "epochs", "batch", "rate_mbit")
    return {name: getattr(args, name) for name in names}


def compared(found: harness.Figures) -> harness.Figures:
    slow, fast = (found[mode] | found[mode].get("scores", {}) for mode in ("async", "geo"))
    ratio = fast["words_per_s"] / slow["words_per_s"]
    quality = [name for name in ("test_loss", "accuracy", "top_10", "kinds") if name in slow]
    return {
        "geo_over_async": round(ratio, 2),
        "as_claimed": ratio >= CLAIMED_RATIO,
        "geo_minus_async": {name: round(fast[name] - slow[name], 4) for name in quality},
    }


def prepared(example: Path, texts: list[Path], args: argparse.Namespace) -> int:
    """Copy the example and make pairs of the texts; returns the number of words."""
    shutil.copytree(EXAMPLE, example, ignore=shutil.ignore_patterns("data", "__pycache__"))
    made = runpy.run_path(str(example / "make_data.py"))
    if args.sentences:
        whole, texts = texts, [example / f"text-{number}" for number in range(len(texts))]
        for text, short in zip(whole, texts, strict=True):
            lines = itertools.islice(made["sentences_of"](text), args.sentences)
            short.write_text("".join(f"{' '.join(line)}\n" for line in lines))
    with contextlib.redirect_stdout(sys.stderr):
        return int(made["main"](example / "data", *texts))


def trained(mode: str, example: Path, words: int, args: argparse.Namespace) -> harness.Figures:
    with hosts_of(args) as hosts:
        reports = Training(mode, example, hosts, args).run()
        sent = hosts.sent_bytes() if isinstance(hosts, Network) else 0
    seconds = max(report["seconds"] for report in reports)
    counters = [report["counters"] for report in reports]
    moved = sum(each.get(name, 0) for each in counters for name in ("push_bytes", "pull_bytes"))
    if args.rate_mbit and sent < moved:
        raise SystemExit(f"only {sent:,} of {moved:,.0f} bytes went over the limited links")
    figures = {
        "words_per_s": round(words / seconds),
        "pairs_per_s": round(sum(report["examples"] for report in reports) / seconds),
        "seconds": round(seconds, 1),
        "test_loss": round(reports[0]["test_loss"], 4),
        "bytes_per_word": round(moved / words),
        "mb_per_s": round(moved / seconds / 1e6, 1),
    }
    if sent:
        figures["wire_bytes_per_word"] = round(sent / words)
    return figures | scored(example, args)


@contextlib.contextmanager
def hosts_of(args: argparse.Namespace) -> Iterator[harness.Hosts]:
    if not args.rate_mbit:
        yield harness.Here()
        return
    names = [f"p{n}" for n in range(args.pservers)] + [f"t{n}" for n in range(args.trainers)]
    with limited(names, args.rate_mbit) as network:
        yield network


@dataclass(frozen=True)
class Training:
    """One training of the example's copy; trainer 0 saves the vectors in its `vectors`."""

    mode: str
    example: Path
    hosts: harness.Hosts
    args: argparse.Namespace

    def run(self) -> list[harness.Figures]:
        """Train; returns the reports of the trainers."""
        shutil.rmtree(self.example / "vectors", ignore_errors=True)
        if self.mode == LOCAL:
            return self._finished([self._start(0, "--local")])
        # A Unix socket would bypass a limit.
        flags = ("--unix-dir", "off") if self.args.rate_mbit else ()
        with harness.pservers(self.args.pservers, *flags, hosts=self.hosts) as endpoints:
            company = ["--endpoints", ",".join(endpoints), "--trainers", str(self.args.trainers)]
            numbers = range(self.args.trainers)
            return self._finished(
                [self._start(n, *company, "--trainer-id", str(n)) for n in numbers]
            )

    def _start(self, number: int, *flags: str) -> subprocess.Popen[bytes]:
        command = [*self.hosts.prefix(f"t{number}"), *PSRT, "trainer", *flags]
        command += ["--report", str(self._report(number)), str(self._job())]
        command += ["--save", str(self.example / "vectors")] if number == 0 else []
        return subprocess.Popen(command, env=self._environ(), stdout=sys.stderr)

    def _job(self) -> Path:
        own = self.example / f"{self.mode}.toml"
        return own if own.exists() else self.example / "word2vec.toml"

    def _environ(self) -> dict[str, str]:
        environ = os.environ | {
            "PSRT_DATA_EPOCHS": str(self.args.epochs),
            "PSRT_DATA_BATCH_SIZE": str(self.args.batch),
        }
        if self.mode != LOCAL:
            environ["PSRT_COMMUNICATION_MODE"] = self.mode
        return environ | dict(setting.split("=", 1) for setting in self.args.set)

    def _report(self, number: int) -> Path:
        return self.example / f"{number}.json"

    def _finished(self, children: list[subprocess.Popen[bytes]]) -> list[harness.Figures]:
        """Wait for all trainers; the failure of one ends the others."""
        try:
            for child in children:
                if child.wait(timeout=TIMEOUT_S):
                    raise SystemExit(f"a trainer ended with exit code {child.returncode}")
        finally:
            for child in children:
                child.kill()
                child.wait()
        return [json.loads(self._report(n).read_text()) for n in range(len(children))]


def scored(example: Path, args: argparse.Namespace) -> harness.Figures:
    if args.questions is None:
        return {}
    lines = (example / "data" / "vocabulary.tsv").read_text().splitlines()
    words = [line.split("\t")[0] for line in lines]
    saved = saved_model.load(example / "vectors")
    vectors = saved.pull_rows({"centers": np.arange(len(words), dtype=np.int64)})["centers"]
    return {"scores": word_scores.scores(vectors, words, args.questions)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("texts", nargs="*", type=Path, help="a sentence a line, plain or .gz")
    parser.add_argument("--mode", choices=MODES, default="async")
    parser.add_argument("--compare", action="store_true", help="async and geo in one run")
    parser.add_argument("--rate-mbit", type=float, default=0.0, help="0 = no limit")
    parser.add_argument("--questions", type=Path, help="word2vec's analogy questions")
    parser.add_argument("--pservers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--sentences", type=int, default=0, help="of each text; 0 = all")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PSRT_…=…", help="of the trainers' settings"
    )
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # runs every `finally`
    harness.main(parser, run)
