"""Beam search in a `While`: a step of it, and the sentences that its arrays of steps hold."""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.arrays import parts_of
from psrt.fluid.adapting.nested import outer_of
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> Any:
    """Return the words and scores, lod_level 2, of the best continuations of each source.

    `pre_ids` and `pre_scores` are those of the step before, lod_level 2 with sources as outer
    lists; `ids` and `scores` (prefixes, k) those of each prefix, and without `ids` a word is a
    column. `level` is 0, that of the sources. With `return_parent_idx` also the prefix of each
    word. Raises `ProgramError` for lists of one level.
    """
    sources = outer_of(pre_ids) or outer_of(pre_scores)
    if sources is None or level:
        raise ProgramError(
            f"layers.beam_search was given {pre_ids!r} and level {level}; it searches by the outer "
            "lists of a var of lod_level 2.",
            hint='Declare the first words so: layers.data("init_ids", [1], "int64", lod_level=2).',
        )
    call = default_main_program().call
    if ids is None:
        scores, ids = call(psrt_layers.topk, scores, min(beam_size, scores.shape[-1]))
    found, totals, _, parents = call(
        *(psrt_layers.beam_search, pre_ids, pre_scores, ids, scores, sources),
        *(beam_size, end_id, is_accumulated),
        layer_name=name or "",
    )
    return (found, totals, parents) if return_parent_idx else (found, totals)


def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Return the sentences of arrays of words and scores, and their scores, lod_level 2.

    Outer lists are those of the sources, best sentence first. Raises `ProgramError` for arrays
    whose elements are not of lod_level 2.
    """
    lengths, counts = parts_of(ids)
    if lengths is None or counts is None:
        raise ProgramError(
            f"layers.beam_search_decode was given {ids!r}, whose elements have no two levels of "
            "lists.",
            hint="Write what layers.beam_search returns.",
        )
    found, totals, _ = default_main_program().call(
        *(psrt_layers.beam_search_decode, ids, scores, lengths, counts, beam_size, end_id),
        layer_name=name or "",
    )
    return found, totals


__all__ = ["beam_search", "beam_search_decode"]
