"""Sentences of a planted model with a known best perplexity.

A word is drawn by Zipf's law, or, with probability `bond`, is the one successor of the word before.
The perplexity of the model itself on the test text is the best that a language model can reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import F64, I64
from psrt.data.convert.sharded import Destination, Lines, ShardedWriter

_SENTENCES_PER_WRITE = 4096


@dataclass(frozen=True)
class PlantedText:
    """`words` in a vocabulary, sentences of `length` words."""

    sentences: int
    test_sentences: int
    seed: int = 0
    words: int = 2000
    length: int = 20
    bond: float = 0.5
    skew: float = 1.1

    def __post_init__(self) -> None:
        if min(self.sentences, self.words, self.length) < 1 or self.test_sentences < 0:
            raise ConfigError("synth-text wants 1 sentence, word and word a sentence, or more.")
        if not 0 <= self.bond < 1:
            raise ConfigError(f"bond is in [0, 1), not {self.bond}.")

    def frequencies(self) -> F64:
        """Return the chances of a free draw, (words,)."""
        weights: F64 = np.arange(1, self.words + 1, dtype=np.float64) ** -self.skew
        weights /= weights.sum()
        return weights

    def successors(self) -> I64:
        """Return the successor of each word, (words,)."""
        return np.random.default_rng((self.seed, 1)).permutation(self.words).astype(np.int64)


def generate(
    planted: PlantedText,
    destination: Destination,
    on_sentences: Callable[[int], None] = lambda sentences: None,
) -> tuple[ShardedWriter, float]:
    """Write the sentences; returns the model's own perplexity per word on the test text.

    First words, which have no predecessor, are left out; nan without test sentences.
    """
    draw = np.random.default_rng((planted.seed, 2))
    nats, words = 0.0, 0
    with ShardedWriter(destination) as writer:
        for part, wanted in (("train", planted.sentences), ("test", planted.test_sentences)):
            for start in range(0, wanted, _SENTENCES_PER_WRITE):
                count = min(_SENTENCES_PER_WRITE, wanted - start)
                text = sentences(planted, draw, count)
                lines = [" ".join(map("w{}".format, row)).encode() + b"\n" for row in text.tolist()]
                writer.write(part, Lines(np.zeros(count, np.uint8), lines))
                if part == "test":
                    nats += surprise(planted, text)
                    words += text.size - count
                on_sentences(count)
    return writer, math.exp(nats / words) if words else math.nan


def sentences(planted: PlantedText, draw: np.random.Generator, count: int) -> I64:
    """Return words (count, length)."""
    shape = (count, planted.length)
    text = draw.choice(planted.words, shape, p=planted.frequencies()).astype(np.int64)
    bound = draw.random(shape) < planted.bond
    successors = planted.successors()
    for place in range(1, planted.length):
        text[:, place] = np.where(bound[:, place], successors[text[:, place - 1]], text[:, place])
    return text


def surprise(planted: PlantedText, text: I64) -> float:
    """Return −Σ ln P(word | word before) under the planted model, in nats."""
    before, after = text[:, :-1], text[:, 1:]
    chances = (1 - planted.bond) * planted.frequencies()[after]
    chances = chances + planted.bond * (planted.successors()[before] == after)
    return float(-np.log(chances).sum())
