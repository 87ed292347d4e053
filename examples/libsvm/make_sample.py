"""Writes 1,500 invented rows of libsvm text, to try the commands with: `python make_sample.py F`.

Each row has 8 of 120 indices; an even index speaks for the positive class, an odd one against it.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

ROWS, ENTRIES, INDICES = 1500, 8, 120


def line(draw: random.Random) -> str:
    indices = sorted(draw.sample(range(1, INDICES + 1), ENTRIES))
    values = [round(draw.uniform(0.5, 1.5), 3) for _ in indices]
    score = sum(v if i % 2 == 0 else -v for i, v in zip(indices, values, strict=True))
    label = "+1" if draw.random() < 1 / (1 + math.exp(-score)) else "-1"
    return f"{label} {' '.join(f'{i}:{v}' for i, v in zip(indices, values, strict=True))}\n"


if __name__ == "__main__":
    draw = random.Random(1)
    Path(sys.argv[1]).write_text("".join(line(draw) for _ in range(ROWS)))
