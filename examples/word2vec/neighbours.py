"""The nearest words by cosine: `python neighbours.py MODEL data/vocabulary.tsv WORD…`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from psrt.trainer.models import saved_model

SHOWN = 8


def main(model: Path, vocabulary: Path, asked: list[str]) -> None:
    words = [line.split("\t")[0] for line in vocabulary.read_text().splitlines()]
    ids = np.arange(len(words), dtype=np.int64)
    saved = saved_model.load(model)
    rows = saved.dense.get("centers")
    if rows is None:
        rows = saved.pull_rows({"centers": ids})["centers"]
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    for word in asked:
        if word not in words:
            sys.exit(f"{word} is not in {vocabulary}")
        cosines = unit @ unit[words.index(word)]
        nearest = np.argsort(-cosines)[1 : SHOWN + 1]
        print(f"{word}:", ", ".join(f"{words[i]} {cosines[i]:.2f}" for i in nearest))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
