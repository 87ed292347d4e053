"""Writes MultiSlot files of skip-gram pairs: `python make_data.py data [TEXT[.gz]…]`.

A line is `1 center 1 target`: a word and one within its window (Mikolov et al. 2013). Ids count
words by falling frequency from 0; `vocabulary.tsv` has a word and its count a line. Words rarer
than `MIN_COUNT` are left out; of frequent ones some are kept, with probability √(t / f) + t / f as
in word2vec.c; the width of the window is drawn for each center from 1 to `WINDOW`. Line ends are
ends of sentences, which no window passes; sentences of several texts are mixed. Without a text,
sentences of a small invented language are written, in which words of a kind stand in for one
another.
"""

from __future__ import annotations

import gzip
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

WINDOW, MIN_COUNT, KEEP = 5, 5, 1e-4
FILES, TEST_SHARE = 4, 50
KINDS = {"animal": "cat dog cow fox hen", "act": "eats sees wants finds", "food": "corn rice fish"}


def invented(draw: random.Random, sentences: int = 4000) -> Iterator[list[str]]:
    words = {kind: text.split() for kind, text in KINDS.items()}
    for _ in range(sentences):
        yield ["the", *(draw.choice(words[kind]) for kind in ("animal", "act", "food"))]


def sentences_of(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        yield from (line.split() for line in lines)


def kept(ids: Sequence[int], chances: Sequence[float], draw: random.Random) -> list[int]:
    """The words of a sentence that subsampling leaves."""
    return [word for word in ids if chances[word] >= 1 or draw.random() < chances[word]]


def pairs(ids: Sequence[int], draw: random.Random) -> Iterator[str]:
    for at, center in enumerate(ids):
        width = draw.randint(1, WINDOW)
        for other in range(max(0, at - width), min(len(ids), at + width + 1)):
            if other != at:
                yield f"1 {center} 1 {ids[other]}\n"


def main(directory: Path, *texts: Path) -> int:
    """Returns how many words there are to train on, before any are left out by chance."""
    draw = random.Random(1)
    read = map(sentences_of, texts) if texts else [invented(draw)]
    sentences = list(chain.from_iterable(read))
    if len(texts) > 1:
        draw.shuffle(sentences)
    counts = Counter(word for sentence in sentences for word in sentence)
    known = [(word, count) for word, count in counts.most_common() if count >= MIN_COUNT]
    ids = {word: number for number, (word, _) in enumerate(known)}
    total = sum(count for _, count in known)
    rarities = [KEEP * total / count for _, count in known]
    chances = [math.sqrt(rarity) + rarity if texts else 1.0 for rarity in rarities]

    directory.mkdir(parents=True, exist_ok=True)
    table = "".join(f"{word}\t{count}\n" for word, count in known)
    (directory / "vocabulary.tsv").write_text(table)
    names = [f"train-{number}.txt" for number in range(FILES)] + ["test-0.txt"]
    files = [(directory / name).open("w") for name in names]
    trained = 0
    for number, sentence in enumerate(sentences):
        words = [ids[word] for word in sentence if word in ids]
        is_test = number % TEST_SHARE == 0
        trained += 0 if is_test else len(words)
        file = files[-1] if is_test else files[number % FILES]
        file.writelines(pairs(kept(words, chances, draw), draw))
    for file in files:
        file.close()
    print(f"{total:,} words of {len(known):,} kinds in {len(sentences):,} sentences")
    return trained


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
