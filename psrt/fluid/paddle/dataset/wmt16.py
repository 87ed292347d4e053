"""`paddle.dataset.wmt16`: sentences in English and German, as numbers of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from psrt.fluid.paddle.dataset import common

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
_MARKS = ("<s>", "<e>", "<unk>")
_COLUMN = {"en": 0, "de": 1}

Sentences: TypeAlias = tuple[list[int], list[int], list[int]]
Reader: TypeAlias = Callable[[], Iterator[Sentences]]


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """Return a reader of (source, target, target one word on), lists of word numbers.

    Numbers 0, 1 and 2 are the marks of begin, end and words beyond a dictionary; other words have
    numbers by how often the training text has them. The source is in `src_lang`, en or de.
    """
    return _reader("train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:  # noqa: PT028 (a reader, no test)
    """Return a reader of the test sentences, as `train`."""
    return _reader("test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """Return a reader of the sentences for validation, as `train`."""
    return _reader("val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[str, int] | dict[int, str]:
    """Return the numbers of `dict_size` words of a language; words by number if `reverse`."""
    numbers = _numbers(lang, dict_size)
    return {number: word for word, number in numbers.items()} if reverse else numbers


def _numbers(lang: str, dict_size: int) -> dict[str, int]:
    size = min(dict_size, TOTAL_EN_WORDS if lang == "en" else TOTAL_DE_WORDS)
    return {word: number for number, word in enumerate(_words(_archive(), lang, size))}


def _archive() -> str:
    return common.download(DATA_URL, "wmt16", save_name="wmt16.tar.gz")


def _pairs(archive: str, part: str) -> Iterator[list[str]]:
    """Yield the lines of two columns."""
    lines = (line.split("\t") for line in common.lines_in(archive, f"wmt16/{part}"))
    return (columns for columns in lines if len(columns) == 2)


@lru_cache(maxsize=8)
def _words(archive: str, lang: str, size: int) -> list[str]:
    counts: Counter[str] = Counter()
    for columns in _pairs(archive, "train"):
        counts.update(columns[_COLUMN[lang]].split())
    return [*_MARKS, *(word for word, _ in counts.most_common(size - len(_MARKS)))]


def _reader(part: str, src_dict_size: int, trg_dict_size: int, src_lang: str) -> Reader:
    if src_lang not in _COLUMN:
        raise ValueError(f"src_lang is {src_lang!r}, not en or de.")
    trg_lang = "de" if src_lang == "en" else "en"

    def read() -> Iterator[Sentences]:
        source, target = _numbers(src_lang, src_dict_size), _numbers(trg_lang, trg_dict_size)
        begin, end, unknown = range(len(_MARKS))
        for columns in _pairs(_archive(), part):
            first, second = (columns[_COLUMN[lang]].split() for lang in (src_lang, trg_lang))
            ids = [source.get(word, unknown) for word in first]
            words = [target.get(word, unknown) for word in second]
            yield [begin, *ids, end], [begin, *words], [*words, end]

    return read


__all__ = ["get_dict", "test", "train", "validation"]
