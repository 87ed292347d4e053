"""Writes MultiSlot files of the slots `x` (13 floats) and `price` (1 float).

    python make_data.py data                           a planted line
    python make_data.py data/housing housing.data.gz   the UCI housing table (506 rows, 14 columns)

Planted: price = w · x + 3 + noise of standard deviation 0.1, so that the best mean square error is
0.01. Housing: a fifth of the rows, drawn once, is held back; features are shifted and scaled to
mean 0 and deviation 1 over the other rows, so that the test rows are as unseen as tomorrow's.
"""

from __future__ import annotations

import gzip
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

FEATURES, FILES, ROWS = 13, 4, 2000
TEST_SHARE = 5

Row = tuple[Sequence[float], float]


def planted(rows: int, draw: random.Random, weights: Sequence[float]) -> list[Row]:
    made: list[Row] = []
    for _ in range(rows):
        x = [draw.gauss(0, 1) for _ in weights]
        price = sum(w * value for w, value in zip(weights, x, strict=True)) + 3
        made.append((x, price + draw.gauss(0, 0.1)))
    return made


def read_table(path: Path) -> list[Row]:
    """The rows of a blank-separated table, plain or gzip; the last column is the price."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [[float(word) for word in line.split()] for line in text.decode().splitlines() if line]
    wrong = [number for number, row in enumerate(rows, 1) if len(row) != FEATURES + 1]
    if wrong or not rows:
        sys.exit(f"{path}, row {wrong or 1}: expected {FEATURES + 1} numbers")
    return [(row[:-1], row[-1]) for row in rows]


def scaled(rows: Sequence[Row], like: Sequence[Row]) -> list[Row]:
    """`rows` with each feature shifted and scaled as mean and deviation of `like` say."""
    columns = list(zip(*(x for x, _ in like), strict=True))
    means = [statistics.fmean(column) for column in columns]
    deviations = [statistics.pstdev(column) or 1.0 for column in columns]
    return [
        ([(v - m) / d for v, m, d in zip(x, means, deviations, strict=True)], price)
        for x, price in rows
    ]


def write(path: Path, rows: Sequence[Row]) -> None:
    lines = (
        f"{FEATURES} {' '.join(f'{value:.5f}' for value in x)} 1 {price:.5f}\n" for x, price in rows
    )
    path.write_text("".join(lines))


def main(directory: Path, table: Path | None = None) -> None:
    draw = random.Random(1)
    if table:
        rows = read_table(table)
        draw.shuffle(rows)
        tests, train = rows[::TEST_SHARE], [r for i, r in enumerate(rows) if i % TEST_SHARE]
        tests, train = scaled(tests, like=train), scaled(train, like=train)
    else:
        weights = [draw.uniform(-1, 1) for _ in range(FEATURES)]
        train, tests = (planted(rows, draw, weights) for rows in (FILES * ROWS, ROWS))
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        write(directory / f"train-{number}.txt", train[number::FILES])
    write(directory / "test-0.txt", tests)
    print(f"{len(train):,} training rows and {len(tests):,} test rows in {directory}")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
