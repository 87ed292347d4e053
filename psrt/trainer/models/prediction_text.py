"""Predictions as lines of text, one an example: plain values, or a JSON object.

Numbers are the shortest decimals that read back as the same float32. Values of an example that are
themselves arrays are written flat, in C order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from psrt.core.tensors import Ragged
from psrt.core.types import Array

Fetched: TypeAlias = Array | Ragged
Format: TypeAlias = Callable[[Sequence[str], Sequence[Fetched]], Iterator[str]]

_NOT_IN_JSON = {"nan": "null", "inf": "null", "-inf": "null"}


def plain_lines(names: Sequence[str], values: Sequence[Fetched]) -> Iterator[str]:
    """Tabs between vars, blanks between the values of one."""
    for example in zip(*(_examples(value) for value in values), strict=True):
        yield "\t".join(" ".join(words) for words in example) + "\n"


def json_lines(names: Sequence[str], values: Sequence[Fetched]) -> Iterator[str]:
    """An object by var name: a number, or a list where an example may have another count than one.

    JSON has no nan and no infinities: they become null.
    """
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    single = [_is_single(value) for value in values]
    for example in zip(*(_examples(value) for value in values), strict=True):
        parts = []
        for key, words, one in zip(keys, example, single, strict=True):
            listed = ", ".join(_NOT_IN_JSON.get(word, word) for word in words)
            parts.append(f"{key}: {listed}" if one else f"{key}: [{listed}]")
        yield "{" + ", ".join(parts) + "}\n"


FORMATS: dict[str, Format] = {"text": plain_lines, "jsonl": json_lines}


def _is_single(value: Fetched) -> bool:
    return not isinstance(value, Ragged) and value.size == len(value)


def _examples(value: Fetched) -> Iterator[list[str]]:
    """The numbers of each example as words."""
    if isinstance(value, Ragged):
        for start, stop in zip(value.offsets[:-1], value.offsets[1:], strict=True):
            yield _words(value.values[start:stop].reshape(-1))
    elif value.size == len(value):
        for word in _words(value.reshape(-1)):
            yield [word]
    else:
        for row in value.reshape(len(value), -1):
            yield _words(row)


def _words(flat: Array) -> list[str]:
    # str() of a numpy scalar is its shortest decimal; that of a Python float would be a double's.
    return [str(number) for number in np.asarray(flat)]
