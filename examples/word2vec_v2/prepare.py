"""Lays out a workspace: `python prepare.py [TEXT]`, one sentence a line, in SPLIT_COUNT files.

    word_dict.txt                                       a word a line, frequent ones first
    train_data_dir/train.txt-00000 … train.txt-00002    and so test_data_dir/test.txt-…

`train.py` deals the files to trainers by the number in their names, so make at least as many as
there are trainers. Without a text, sentences of a small invented language are written, in which
words of a kind stand in for one another.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

SPLIT_COUNT = 3
TEST_SHARE, WORDS = 10, 2000
KINDS = ("cat dog cow fox hen", "eats sees wants finds", "big red old", "corn rice fish")


def invented(count: int = 3000) -> Iterator[str]:
    draw = random.Random(1)
    for _ in range(count):
        yield " ".join(["the", *(draw.choice(kind.split()) for kind in KINDS)] * 2)


def split(sentences: Sequence[str], directory: Path, name: str) -> None:
    """Deal sentences to files name-00000, name-00001 …"""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(SPLIT_COUNT):
        lines = (f"{sentence}\n" for sentence in sentences[number::SPLIT_COUNT])
        (directory / f"{name}-{number:05d}").write_text("".join(lines))


def main(text: Path | None = None) -> None:
    sentences = text.read_text().splitlines() if text else list(invented())
    counts = Counter(word for sentence in sentences for word in sentence.split())
    known = [word for word, _ in counts.most_common(WORDS - 1)]
    Path("word_dict.txt").write_text("\n".join([*known, "<unk>"]) + "\n")
    tests = sentences[::TEST_SHARE]
    trained = [sentence for at, sentence in enumerate(sentences) if at % TEST_SHARE]
    split(trained, Path("train_data_dir"), "train.txt")
    split(tests, Path("test_data_dir"), "test.txt")
    print(f"{len(known) + 1} words, {len(trained)} sentences to train on, {len(tests)} to test")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
