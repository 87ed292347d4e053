"""A text of random words for W6, drawn by Zipf's law like the peer's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

WORDS, VOCABULARY, SENTENCE = 5_000_000, 50_000, 20


def written(path: Path, words: int = WORDS) -> Path:
    """Write sentences of 20 words `w0` (the most frequent) to `w49999`, one a line."""
    chances = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1))
    drawn = np.random.default_rng(3).random(words) * chances[-1]
    ranks = np.minimum(np.searchsorted(chances, drawn), VOCABULARY - 1)
    with path.open("w") as file:
        for start in range(0, words, SENTENCE):
            line = " ".join(f"w{rank}" for rank in ranks[start : start + SENTENCE])
            file.write(f"{line}\n")
    return path
