"""Beam search."""

from __future__ import annotations

from typing import NamedTuple

from psrt.graph.builder import Layer
from psrt.graph.program import Var


class Beams(NamedTuple):
    """Words and scores, lists by prefix; prefixes, lists by source; and the prefix of each word."""

    ids: Var
    scores: Var
    sources: Var
    parents: Var


class Sentences(NamedTuple):
    """Words and their scores, lists by sentence, and the sentences, lists by source."""

    ids: Var
    scores: Var
    sources: Var


def beam_search(
    pre_ids: Var,
    pre_scores: Var,
    ids: Var,
    scores: Var,
    sources: Var,
    beam_size: int,
    end_id: int,
    is_accumulated: bool = True,
) -> Beams:
    """Take the `beam_size` best continuations of all prefixes of each source.

    `ids` int64 and `scores` (prefixes, k) are those of each prefix; without `is_accumulated` scores
    are probabilities, whose logarithms are added to `pre_scores`. `pre_ids` int64 and `pre_scores`
    (prefixes,) are the last word of each prefix and its score, and one that is `end_id` goes on as
    it is. A source of which nothing else goes on is left out. `sources`, lists by source, has an
    element for each list of prefixes. No gradient.
    """
    layer = Layer("beam_search")
    given = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": scores}
    made = layer.ops(
        "beam_search",
        {**given, "sources": sources},
        beam_size=layer.whole("beam_size", beam_size, least=1),
        end_id=layer.whole("end_id", end_id, least=0),
        is_accumulated=layer.flag("is_accumulated", is_accumulated),
    )
    return Beams(*(made[slot] for slot in ("ids_out", "scores_out", "sources_out", "parents")))


def beam_search_decode(
    ids: Var, scores: Var, lengths: Var, counts: Var, beam_size: int, end_id: int
) -> Sentences:
    """Collect the sentences of each source, best one first, of all steps of a beam search.

    The arguments have a list for each step: words, their scores, the numbers of words by prefix and
    the numbers of prefixes by source. A sentence has at most one `end_id`. No gradient.
    """
    layer = Layer("beam_search_decode")
    made = layer.ops(
        "beam_search_decode",
        {"ids": ids, "scores": scores, "lengths": lengths, "counts": counts},
        beam_size=layer.whole("beam_size", beam_size, least=1),
        end_id=layer.whole("end_id", end_id, least=0),
    )
    return Sentences(*(made[slot] for slot in ("ids_out", "scores_out", "sources_out")))
