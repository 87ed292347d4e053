"""`paddle.dataset.wmt14`: sentences in English and French, as numbers of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias

from psrt.fluid.paddle.dataset import common

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
_START, _END, _UNKNOWN = "<s>", "<e>", 2
_LONGEST = 80

Sentences: TypeAlias = tuple[list[int], list[int], list[int]]
Reader: TypeAlias = Callable[[], Iterator[Sentences]]


def train(dict_size: int) -> Reader:
    """Return a reader of (source, target, target one word on), lists of word numbers.

    Words beyond the first `dict_size` of a dictionary are number 2. Sources begin and end with
    marks; pairs with more than 80 words on a side are left out.
    """
    return _reader("train/train", dict_size)


def test(dict_size: int) -> Reader:
    """Return a reader of the test sentences, as `train`."""
    return _reader("test/test", dict_size)


def gen(dict_size: int) -> Reader:
    """Return a reader of the sentences to translate, as `train`."""
    return _reader("gen/gen", dict_size)


def get_dict(
    dict_size: int, reverse: bool = True
) -> tuple[dict[int, str] | dict[str, int], dict[int, str] | dict[str, int]]:
    """Return the words of source and target by number; numbers by word unless `reverse`."""
    source, target = _numbers("src.dict", dict_size), _numbers("trg.dict", dict_size)
    return (_reversed(source), _reversed(target)) if reverse else (source, target)


def _reversed(numbers: dict[str, int]) -> dict[int, str]:
    return {number: word for word, number in numbers.items()}


def _archive() -> str:
    return common.download(URL_TRAIN, "wmt14")


def _numbers(name: str, dict_size: int) -> dict[str, int]:
    words = islice(common.lines_in(_archive(), name), dict_size)
    return {word: number for number, word in enumerate(words)}


def _reader(part: str, dict_size: int) -> Reader:
    def read() -> Iterator[Sentences]:
        source, target = _numbers("src.dict", dict_size), _numbers("trg.dict", dict_size)
        for line in common.lines_in(_archive(), part):
            columns = line.split("\t")
            if len(columns) == 2:
                first, second = (column.split() for column in columns)
                ids = [source.get(word, _UNKNOWN) for word in (_START, *first, _END)]
                words = [target.get(word, _UNKNOWN) for word in second]
                if max(len(ids), len(words)) <= _LONGEST:
                    yield ids, [target[_START], *words], [*words, target[_END]]

    return read


__all__ = ["gen", "get_dict", "test", "train"]
