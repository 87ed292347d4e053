"""`paddle.dataset.conll05`: sentences, and the role of each word for one of their verbs."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, TypeAlias

from psrt.core.errors import DataError
from psrt.fluid.paddle.dataset import common

_FOLDER = "http://paddlemodels.bj.bcebos.com/conll05st"
DATA_URL = f"{_FOLDER}/conll05st-tests.tar.gz"
WORDDICT_URL = f"{_FOLDER}%2FwordDict.txt"
VERBDICT_URL = f"{_FOLDER}%2FverbDict.txt"
TRGDICT_URL = f"{_FOLDER}%2FtargetDict.txt"
EMB_URL = f"{_FOLDER}%2Femb"
_PARTS = [f"conll05st-release/test.wsj/{part}/test.wsj.{part}.gz" for part in ("words", "props")]
_UNKNOWN = 0

Numbers: TypeAlias = Mapping[str, int]
Reader: TypeAlias = Callable[[], Iterator[tuple[list[int], ...]]]


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the numbers of words, of verbs and of labels.

    Labels are `B-X` and `I-X` of each role X of the file, in the order of the alphabet, and `O`.
    """
    words, verbs = (_numbers(_lines(url)) for url in (WORDDICT_URL, VERBDICT_URL))
    roles = {line[2:] for line in _lines(TRGDICT_URL) if line[:2] in ("B-", "I-")}
    labels = [f"{begin}-{role}" for role in sorted(roles) for begin in "BI"]
    return words, verbs, _numbers([*labels, "O"])


def get_embedding() -> str:
    """Return the path of the file of word vectors: 16 bytes, then float32 by word."""
    return _file(EMB_URL)


def test() -> Reader:
    """Return a reader of nine lists for each verb of a sentence, with a number for each word.

    They are: the words; the word two before the verb, one before it, the verb itself, one behind
    it, two behind it, each repeated; the verb as predicate, repeated; marks of these five words;
    labels.
    """
    words, verbs, labels = get_dict()
    path = common.download(DATA_URL, "conll05st")
    return lambda: (_example(*found, words, verbs, labels) for found in _sentences(path))


def _file(url: str) -> str:
    return common.download(url, "conll05st")


def _lines(url: str) -> list[str]:
    return [line.strip() for line in Path(_file(url)).read_text(encoding="utf-8").splitlines()]


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _sentences(path: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yield words, a verb, and the labels of the words for it: a tuple for each verb."""
    with tarfile.open(path) as archive:
        words, marks = (_text(archive, name, path) for name in _PARTS)
        pairs = zip(words, (line.split() for line in marks), strict=True)
        for is_sentence, group in groupby(pairs, key=lambda pair: bool(pair[1])):
            if is_sentence:
                sentence, columns = zip(*group, strict=True)
                verbs, *roles = zip(*columns, strict=True)
                named = [verb for verb in verbs if verb != "-"]
                for verb, brackets in zip(named, roles, strict=True):
                    yield list(sentence), verb, _labels(brackets)


def _text(archive: tarfile.TarFile, name: str, path: str) -> Iterator[str]:
    try:
        member: IO[bytes] | None = archive.extractfile(name)
    except KeyError:
        member = None
    if member is None:
        raise DataError(f"{path} has no file {name}.")
    with gzip.open(member, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield line.strip()


def _labels(brackets: Sequence[str]) -> list[str]:
    """Return the labels of words whose roles are bracketed: `(A0*`, `*`, `*)` or `(V*)`."""
    made, role = [], ""
    for bracket in brackets:
        if bracket.startswith("("):
            role = bracket[1 : bracket.index("*")]
            made.append(f"B-{role}")
        else:
            made.append(f"I-{role}" if role else "O")
        if bracket.endswith(")"):
            role = ""
    return made


def _example(
    sentence: list[str],
    verb: str,
    labels: list[str],
    word_numbers: Numbers,
    verb_numbers: Numbers,
    label_numbers: Numbers,
) -> tuple[list[int], ...]:
    at, length = labels.index("B-V"), len(sentence)
    framed = ["bos", "bos", *sentence, "eos", "eos"]
    near = [word_numbers.get(word, _UNKNOWN) for word in framed[at : at + 5]]
    return (
        [word_numbers.get(word, _UNKNOWN) for word in sentence],
        *([number] * length for number in near),
        [verb_numbers[verb]] * length,
        [int(abs(place - at) <= 2) for place in range(length)],
        [label_numbers[label] for label in labels],
    )


__all__ = ["get_dict", "get_embedding", "test"]
