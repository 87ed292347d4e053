"""Beam search: a step of it, and the sentences of all steps.

Plain Python over sources and prefixes: a beam has a few of them, and a step waits for the products
that score its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import I64, Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.compute.sequence import offsets_from, offsets_of
from psrt.executor.memory import Cell


@computes("beam_search")
def beam_search(op: Bound) -> Step:
    pre_ids, pre_scores, ids, scores = op.each("pre_ids", "pre_scores", "ids", "scores")
    sources, attrs = op.one("sources"), op.attrs

    def run() -> None:
        before = _Prefixes(pre_ids.value.reshape(-1), pre_scores.value.reshape(-1))
        bounds = _rows_of_sources(pre_ids, sources)
        totals = scores.value
        if not attrs["is_accumulated"]:
            totals = np.log(totals) + before.scores[:, None]
        kept: list[list[_Word]] = [[] for _ in before.ids]
        for start, stop in bounds:
            best = _best(before, range(start, stop), ids.value, totals, attrs)
            if not all(before.ids[w.prefix] == w.id == attrs["end_id"] for w in best):
                for word in best:
                    kept[word.prefix].append(word)
        _set(op, kept, [stop - start for start, stop in bounds])

    return run


@dataclass(frozen=True)
class _Prefixes:
    """The last word of each prefix, and its score."""

    ids: I64
    scores: Array


@dataclass(frozen=True)
class _Word:
    """A continuation of a prefix."""

    prefix: int
    id: int
    score: float


def _rows_of_sources(rows: Cell, sources: Cell) -> list[tuple[int, int]]:
    """The prefixes of each source: rows from the first to behind the last.

    A list of rows belongs to one source; rows without lists are lists of one.
    """
    ends = offsets_of(sources)
    if rows.offsets is not None and len(rows.offsets) - 1 == len(sources.value):
        ends = rows.offsets[ends]
    if ends[-1] != len(rows.value):
        raise DataError(f"{sources.name} has {ends[-1]} prefixes, {rows.name} {len(rows.value)}.")
    return [*zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def _best(
    before: _Prefixes, prefixes: range, ids: I64, scores: Array, attrs: Mapping[str, Any]
) -> list[_Word]:
    """The best continuations of the prefixes of one source, best one first.

    Of equal scores that of the later prefix is better, as in Fluid.
    """
    beam_size, end_id = attrs["beam_size"], attrs["end_id"]
    found = []
    for prefix in prefixes:
        if before.ids[prefix] == end_id:
            found.append(_Word(prefix, end_id, float(before.scores[prefix])))
        else:
            pairs = zip(ids[prefix].tolist(), scores[prefix].tolist(), strict=True)
            found += [_Word(prefix, id, score) for id, score in pairs]
    return sorted(found, key=lambda word: (-word.score, -word.prefix))[:beam_size]


def _set(op: Bound, kept: Sequence[Sequence[_Word]], counts: Sequence[int]) -> None:
    """Set the outputs: the words of each prefix, and the number of prefixes of each source."""
    words = [word for each in kept for word in each]
    lists = offsets_from(np.array([len(each) for each in kept], np.int64))
    width = op.one("pre_ids").value.shape[1:]
    for slot, values in (
        ("ids_out", [w.id for w in words]),
        ("scores_out", [w.score for w in words]),
    ):
        cell = op.one(slot)
        cell.offsets = lists
        cell.reserve((len(words), *width))[...] = np.reshape(values, (-1, *width))
    sources = op.one("sources_out")
    sources.offsets = offsets_from(np.array(counts, np.int64))
    sources.reserve((len(kept),))[...] = np.diff(lists)
    op.one("parents").reserve((len(words),))[...] = [word.prefix for word in words]


# --- sentences ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _BeamStep:
    """One step: words, scores, and where those of each prefix and of each source begin."""

    ids: list[int]
    scores: list[float]
    words: I64
    prefixes: I64


@dataclass
class _Sentence:
    """Words from the last to the first one, their scores, and the place of the next one."""

    at: int
    ids: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)


@computes("beam_search_decode")
def beam_search_decode(op: Bound) -> Step:
    cells, end_id = op.each("ids", "scores", "lengths", "counts"), op.attrs["end_id"]

    def run() -> None:
        steps = _steps(*cells)
        if not steps:
            raise DataError("beam_search_decode was given no step of a beam search.")
        count = len(steps[0].prefixes) - 1
        found = [
            _sentences(steps, source, op.attrs["beam_size"], end_id) for source in range(count)
        ]
        sentences = [sentence for each in found for sentence in each]
        lengths = np.array([len(sentence.ids) for sentence in sentences], np.int64)
        for slot, name in (("ids_out", "ids"), ("scores_out", "scores")):
            values = [value for sentence in sentences for value in getattr(sentence, name)[::-1]]
            op.one(slot).offsets = offsets_from(lengths)
            op.one(slot).reserve((len(values),))[...] = values
        op.one("sources_out").offsets = offsets_from(np.array([len(each) for each in found]))
        op.one("sources_out").reserve((len(sentences),))[...] = lengths

    return run


def _steps(ids: Cell, scores: Cell, lengths: Cell, counts: Cell) -> list[_BeamStep]:
    parts = [
        np.split(cell.value.reshape(-1), offsets_of(cell)[1:-1])
        for cell in (ids, scores, lengths, counts)
    ]
    return [
        _BeamStep(i.tolist(), s.tolist(), offsets_from(n), offsets_from(c))
        for i, s, n, c in zip(*parts, strict=True)
    ]


def _sentences(
    steps: Sequence[_BeamStep], source: int, beam_size: int, end_id: int
) -> list[_Sentence]:
    """The sentences of one source, best one first, by going back from where each ends.

    A source that is left out in the last steps ends in the last one that has words of it.
    """
    found: list[_Sentence] = []
    for step in reversed(steps):
        found = found or _ends(step, source, beam_size)
        for sentence in found:
            id, score = step.ids[sentence.at], step.scores[sentence.at]
            if id != end_id or not sentence.ids:  # one end is enough
                sentence.ids.append(id)
                sentence.scores.append(score)
            sentence.at = int(np.searchsorted(step.words, sentence.at, "right")) - 1
    return sorted(found, key=lambda sentence: -sentence.scores[0])


def _ends(step: _BeamStep, source: int, beam_size: int) -> list[_Sentence]:
    """A sentence for each word of a source in one step."""
    first, last = (step.words[step.prefixes[source + end]] for end in (0, 1))
    return [_Sentence(at) for at in range(first, last)][:beam_size]
