"""`paddle.dataset.imikolov`: n-grams, or sequences, of the Penn Treebank's words."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from psrt.core.errors import DataError
from psrt.fluid.paddle.dataset import common

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
_FILES = {part: f"./simple-examples/data/ptb.{part}.txt" for part in ("train", "valid")}

Reader: TypeAlias = Callable[[], Iterator[tuple[Any, ...]]]


class DataType:
    """Kinds of examples: `n` words each, or a whole line and the same, one word on."""

    NGRAM = 1
    SEQ = 2


def build_dict(min_word_freq: int = 50) -> dict[str, int]:
    """Return the number of each word that occurs more often, the most frequent first."""
    counts: Counter[str] = Counter()
    for part in _FILES:
        for words in _lines(part):
            counts.update(["<s>", *words, "<e>"])
    counts.pop("<unk>", None)
    kept = [(word, count) for word, count in counts.items() if count > min_word_freq]
    ordered = sorted(kept, key=lambda pair: (-pair[1], pair[0]))
    return {word: at for at, (word, _) in enumerate([*ordered, ("<unk>", 0)])}


def train(word_idx: Mapping[str, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """Return a reader of the training text: tuples of `n` word numbers."""
    return lambda: _examples("train", word_idx, n, data_type)


def test(
    word_idx: Mapping[str, int],
    n: int,
    data_type: int = DataType.NGRAM,  # noqa: PT028 (a reader, no test)
) -> Reader:
    """Return a reader of the validation text."""
    return lambda: _examples("valid", word_idx, n, data_type)


def _examples(
    part: str, word_idx: Mapping[str, int], n: int, data_type: int
) -> Iterator[tuple[Any, ...]]:
    unknown = word_idx["<unk>"]
    for words in _lines(part):
        ids = [word_idx.get(word, unknown) for word in words]
        if data_type == DataType.NGRAM:
            whole = [word_idx.get("<s>", unknown), *ids, word_idx.get("<e>", unknown)]
            yield from (tuple(whole[end - n : end]) for end in range(n, len(whole) + 1))
        else:
            begun = [word_idx.get("<s>", unknown), *ids]
            ended = [*ids, word_idx.get("<e>", unknown)]
            if n <= 0 or len(begun) <= n:
                yield begun, ended


def _lines(part: str) -> Iterator[list[str]]:
    path = common.download(URL, "imikolov", save_name="simple-examples.tgz")
    with tarfile.open(path) as archive:
        member = archive.extractfile(_FILES[part])
        if member is None:
            raise DataError(f"{path} has no file {_FILES[part]}.")
        for line in member:
            yield line.decode().split()


__all__ = ["DataType", "build_dict", "test", "train"]
