"""Writes MultiSlot files of a planted line: `python make_data.py data`.

price = w · x + 3 + noise of standard deviation 0.1, so that the best mean square error is 0.01.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

FEATURES, FILES, ROWS = 13, 4, 2000


def line(draw: random.Random, weights: list[float]) -> str:
    x = [draw.gauss(0, 1) for _ in weights]
    price = sum(w * value for w, value in zip(weights, x, strict=True)) + 3 + draw.gauss(0, 0.1)
    return f"{FEATURES} {' '.join(f'{value:.5f}' for value in x)} 1 {price:.5f}\n"


def main(directory: Path) -> None:
    draw = random.Random(1)
    weights = [draw.uniform(-1, 1) for _ in range(FEATURES)]
    directory.mkdir(parents=True, exist_ok=True)
    names = [f"train-{number}.txt" for number in range(FILES)] + ["test-0.txt"]
    for name in names:
        (directory / name).write_text("".join(line(draw, weights) for _ in range(ROWS)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
