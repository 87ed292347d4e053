"""Writes MultiSlot files of invented shoppers: `python make_data.py data [ROWS]`.

Slots: `click` (1 float), `history` (3 to 20 item ids), `item` (1 id). Items belong to kinds, which
are not told; a shopper follows two or three kinds and looked at items of these, and others. The
offered item is clicked the more likely, the more items of its own kind are in the history:

    P(click) = σ(2 · √(items of its kind) − 3 + charm of the item)

What the rest of the history holds does not matter, so a model must look at the items that count.
The best possible test AUC is printed, that of P itself.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

ITEMS, KINDS = 300, 15
ROWS, TEST_ROWS, FILES = 80_000, 8_000, 4

Charms = list[float]


def line(draw: random.Random, charms: Charms) -> tuple[str, float, bool]:
    """A MultiSlot line, P(click), and whether it was clicked. The kind of item i is i mod KINDS."""
    followed = draw.sample(range(KINDS), draw.randint(2, 3))
    history = [of_kind(draw, draw.choice(followed)) for _ in range(draw.randint(3, 20))]
    history = [draw.randrange(ITEMS) if draw.random() < 0.2 else item for item in history]
    kind = draw.choice(followed) if draw.random() < 0.5 else draw.randrange(KINDS)
    item = of_kind(draw, kind)
    alike = sum(seen % KINDS == kind for seen in history)
    chance = 1 / (1 + math.exp(3 - 2 * math.sqrt(alike) - charms[item]))
    click = draw.random() < chance
    seen = f"{len(history)} {' '.join(map(str, history))}"
    return f"1 {int(click)} {seen} 1 {item}\n", chance, click


def of_kind(draw: random.Random, kind: int) -> int:
    return draw.randrange(ITEMS // KINDS) * KINDS + kind


def auc(scored: list[tuple[float, bool]]) -> float:
    """The part of pairs of a clicked and another row that the scores put in order."""
    ranks = [rank for rank, (_, click) in enumerate(sorted(scored), 1) if click]
    positives, negatives = len(ranks), len(scored) - len(ranks)
    return (sum(ranks) - positives * (positives + 1) / 2) / (positives * negatives)


def main(directory: Path, rows: int) -> None:
    draw = random.Random(1)
    charms = [draw.gauss(0, 0.5) for _ in range(ITEMS)]
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        text = "".join(line(draw, charms)[0] for _ in range(rows // FILES))
        (directory / f"train-{number}.txt").write_text(text)
    tests = [line(draw, charms) for _ in range(TEST_ROWS)]
    (directory / "test-0.txt").write_text("".join(text for text, _, _ in tests))
    best = auc([(chance, click) for _, chance, click in tests])
    print(f"best possible test AUC {best:.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
