"""Reader decorators: from readers to readers, one example after the other.

A reader is a function without arguments that starts an iteration over examples; each call starts a
new one. Decorators read nothing before that, and pass on a reader's errors. Those that read in
threads are in `read_ahead`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from psrt.core.errors import DataError
from psrt.data.checks import at_least

Example = TypeVar("Example")
Made = TypeVar("Made")
Reader: TypeAlias = Callable[[], Iterable[Example]]
Iteration: TypeAlias = Callable[[], Iterator[Example]]

_END = object()


class ComposeNotAligned(DataError, ValueError):
    """One of the composed readers ended before the others."""


def map_readers(mapper: Callable[..., Made], *readers: Reader[Any]) -> Iteration[Made]:
    """Apply `mapper` to an example of each reader; ends with the shortest."""
    return lambda: map(mapper, *(reader() for reader in readers))


def shuffle(reader: Reader[Example], buf_size: int) -> Iteration[Example]:
    """Shuffle examples within `buf_size` of them, by Python's `random`."""
    at_least_one("buf_size", buf_size)

    def shuffled() -> Iterator[Example]:
        examples = iter(reader())
        while part := list(islice(examples, buf_size)):
            random.shuffle(part)
            yield from part

    return shuffled


def batch(
    reader: Reader[Example], batch_size: int, drop_last: bool = False
) -> Iteration[list[Example]]:
    """Group examples into lists of `batch_size`; the last may be shorter, or is dropped."""
    at_least_one("batch_size", batch_size)

    def batches() -> Iterator[list[Example]]:
        examples = iter(reader())
        while part := list(islice(examples, batch_size)):
            if len(part) == batch_size or not drop_last:
                yield part

    return batches


def chain(*readers: Reader[Example]) -> Iteration[Example]:
    """Concatenate the examples of readers."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers: Reader[Any], check_alignment: bool = True) -> Iteration[tuple[Any, ...]]:
    """Combine an example of each reader into one tuple; examples that are tuples are flattened.

    Raises `ComposeNotAligned` if one reader ends before another, or, without `check_alignment`,
    ends with the shortest.
    """

    def composed() -> Iterator[tuple[Any, ...]]:
        iterations = [reader() for reader in readers]
        if not check_alignment:
            yield from map(_flattened, zip(*iterations, strict=False))
            return
        together = itertools.zip_longest(*iterations, fillvalue=_END)
        for number, examples in enumerate(together):
            ended = [i for i, example in enumerate(examples) if example is _END]
            if ended:
                raise _not_aligned(ended[0], number)
            yield _flattened(examples)

    return composed


def firstn(reader: Reader[Example], n: int) -> Iteration[Example]:
    """Limit to the first `n` examples."""
    at_least(0, "n of firstn", n)
    return lambda: islice(reader(), n)


def cache(reader: Reader[Example]) -> Iteration[Example]:
    """Read all into memory when the first iteration starts; later ones read the memory."""
    kept: list[tuple[Example, ...]] = []

    def cached() -> Iterator[Example]:
        if not kept:
            kept.append(tuple(reader()))
        yield from kept[0]

    return cached


def _flattened(examples: Iterable[Any]) -> tuple[Any, ...]:
    parts = (example if isinstance(example, tuple) else (example,) for example in examples)
    return tuple(itertools.chain.from_iterable(parts))


def _not_aligned(reader: int, examples: int) -> ComposeNotAligned:
    return ComposeNotAligned(
        f"compose: reader {reader} ended after {examples} examples, others go on.",
        hint="Give check_alignment=False to end with the shortest.",
    )


def at_least_one(what: str, given: int) -> None:
    """Raise `ConfigError` naming the argument unless it is 1 or more."""
    at_least(1, f"{what} of a reader", given)
