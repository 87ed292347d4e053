"""Writes rows in Criteo's format: `python make_criteo.py data [ROWS]`, to try `dlrm.py` with.

A row is a label, 13 numbers and 26 words, separated by tabs; some are missing. A few numbers and
words decide the chance of a click, so that an AUC of 0.5 is that of knowing nothing.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

ROWS, TEST_SHARE, FILES = 40_000, 10, 2
NUMBERS, WORDS, VALUES, MISSING = 13, 26, 50, 0.1


def row(draw: random.Random, charms: list[list[float]]) -> str:
    numbers = [int(draw.expovariate(0.2)) for _ in range(NUMBERS)]
    words = [draw.randrange(VALUES) for _ in range(WORDS)]
    charm = sum(charms[field][word] for field, word in enumerate(words[:4]))
    chance = 1 / (1 + math.exp(1.0 - charm - 0.5 * math.log1p(numbers[0])))
    cells = [str(each) for each in numbers] + [f"{word * 0x9E3779B1 % 2**32:08x}" for word in words]
    told = [cell if draw.random() > MISSING else "" for cell in cells]
    return "\t".join([str(int(draw.random() < chance)), *told]) + "\n"


def main(directory: Path, rows: int) -> None:
    draw = random.Random(1)
    charms = [[draw.gauss(0, 1) for _ in range(VALUES)] for _ in range(4)]
    directory.mkdir(parents=True, exist_ok=True)
    sizes = {f"train-{number}.tsv": rows // FILES for number in range(FILES)}
    for name, size in {**sizes, "test-0.tsv": rows // TEST_SHARE}.items():
        (directory / name).write_text("".join(row(draw, charms) for _ in range(size)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
