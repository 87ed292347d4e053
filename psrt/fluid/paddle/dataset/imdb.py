"""`paddle.dataset.imdb`: reviews of films as numbers of words, and whether they are bad."""

from __future__ import annotations

import re
import string
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from psrt.fluid.paddle.dataset import common

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
_PUNCTUATION = string.punctuation.encode()

Reader: TypeAlias = Callable[[], Iterator[tuple[list[int], int]]]


def tokenize(pattern: re.Pattern[str]) -> Iterator[list[bytes]]:
    """Yield the words of each review whose file name matches `pattern`, lower-case, as bytes."""
    with tarfile.open(common.download(URL, "imdb")) as archive:
        for member in archive:
            content = archive.extractfile(member) if pattern.match(member.name) else None
            if content is not None:
                yield content.read().translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[bytes | str, int]:
    """Return the number of each word that occurs more than `cutoff` times, most frequent first.

    Words are bytes; the str `<unk>` has the number of all others, the highest.
    """
    counts = Counter(word for words in tokenize(pattern) for word in words)
    kept = [(word, count) for word, count in counts.items() if count > cutoff]
    ordered = sorted(kept, key=lambda pair: (-pair[1], pair[0]))
    numbers: dict[bytes | str, int] = {word: at for at, (word, _) in enumerate(ordered)}
    return {**numbers, "<unk>": len(ordered)}


def word_dict() -> dict[bytes | str, int]:
    """Return the numbers of words that all reviews together have more than 150 times."""
    return build_dict(re.compile(r"aclImdb/(train|test)/(pos|neg)/.*\.txt$"), 150)


def train(word_idx: Mapping[bytes | str, int]) -> Reader:
    """Return a reader of (word numbers, 0 for a good or 1 for a bad review); good ones first."""
    return _reader("train", word_idx)


def test(word_idx: Mapping[bytes | str, int]) -> Reader:
    """Return a reader of the reviews for tests, as `train`."""
    return _reader("test", word_idx)


def _reader(part: str, word_idx: Mapping[bytes | str, int]) -> Reader:
    def read() -> Iterator[tuple[list[int], int]]:
        unknown = word_idx["<unk>"]
        for label, kind in enumerate(("pos", "neg")):
            for words in tokenize(re.compile(rf"aclImdb/{part}/{kind}/.*\.txt$")):
                yield [word_idx.get(word, unknown) for word in words], label

    return read


__all__ = ["build_dict", "test", "tokenize", "train", "word_dict"]
