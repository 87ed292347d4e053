"""Sentences as word ids: Mikolov's Penn Treebank, or any text with one sentence per line.

Words are separated by blanks. The vocabulary holds those that occur more than `min_count` times in
the training text, most frequent first and alphabetic among equals, and `<unk>` last for all others;
`<s>` and `<e>` count once per sentence. It is written to vocabulary.txt: line i + 1 is word i.

    n-gram      w0 … w{n-2}, next      every n words in a row of `<s> sentence <e>`
    skip-gram   center, context        every two different places at most `window` words apart
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from psrt.core.errors import ConfigError, DataError
from psrt.data.convert.sharded import Destination, Drawn, ShardedWriter, Split, write_parts
from psrt.data.convert.splitter import drawn_lines, numbered_lines
from psrt.data.slots import Slot

VOCABULARY_NAME = "vocabulary.txt"
_START, _END, _UNKNOWN = b"<s>", b"<e>", b"<unk>"

Vocabulary = dict[bytes, int]


@dataclass(frozen=True)
class Windows:
    """Examples of a sentence: n-grams of `n` words, or pairs within `window`."""

    n: int = 5
    window: int = 0

    def __post_init__(self) -> None:
        if self.n < 2 or self.window < 0:
            raise ConfigError(f"n is 2 or more and window 0 or more, not {self.n}, {self.window}.")

    @property
    def slots(self) -> tuple[Slot, ...]:
        words = ["center", "context"] if self.window else [*map("w{}".format, range(self.n - 1))]
        names = words if self.window else [*words, "next"]
        return tuple(Slot(name, "uint64", 1) for name in names)

    def lines(self, ids: Sequence[int]) -> Iterator[bytes]:
        """Yield the MultiSlot lines of a sentence."""
        tokens = [f"1 {word}" for word in ids]
        if not self.window:
            for start in range(len(ids) - self.n + 1):
                yield " ".join(tokens[start : start + self.n]).encode() + b"\n"
            return
        for place, center in enumerate(tokens):
            first = max(0, place - self.window)
            for other in range(first, min(len(tokens), place + self.window + 1)):
                if other != place:
                    yield f"{center} {tokens[other]}\n".encode()


def vocabulary_of(paths: Sequence[Path | str], min_count: int) -> Vocabulary:
    """Return word → id; raises `DataError` for texts without words."""
    counts: Counter[bytes] = Counter()
    for path in paths:
        for _, line in numbered_lines(path):
            counts.update((_START, *line.split(), _END))
    if not counts:
        raise DataError(f"{', '.join(map(str, paths))}: there are no words.")
    counts.pop(_UNKNOWN, None)
    kept = [(-count, word) for word, count in counts.items() if count > min_count]
    return {word: i for i, word in enumerate([*(word for _, word in sorted(kept)), _UNKNOWN])}


def convert(
    inputs: Sequence[Path | str],
    destination: Destination,
    windows: Windows,
    split: Split,
    tests: Sequence[Path | str] = (),
    min_count: int = 50,
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> tuple[ShardedWriter, Vocabulary]:
    """Convert `inputs` and set a share of the sentences aside, or, if given, `tests` instead."""
    vocabulary = vocabulary_of(inputs, min_count)

    def drawn(paths: Sequence[Path | str]) -> Iterator[Drawn]:
        numbered = (line for path in paths for _, line in numbered_lines(path, on_bytes))
        records = ((line, windows.lines(ids_of(line, vocabulary)), False) for line in numbered)
        return drawn_lines(records, split.seed)

    with ShardedWriter(destination) as writer:
        write_parts(writer, split, drawn(inputs), drawn(tests) if tests else None)
        words = b"".join(word + b"\n" for word in vocabulary)
        (destination.directory / VOCABULARY_NAME).write_bytes(words)
    return writer, vocabulary


def ids_of(sentence: bytes, vocabulary: Vocabulary) -> list[int]:
    """Return `<s>`, the words and `<e>` of a line as ids."""
    unknown = vocabulary[_UNKNOWN]
    return [vocabulary.get(word, unknown) for word in (_START, *sentence.split(), _END)]
