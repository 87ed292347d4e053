"""Beam search: the best continuations of prefixes, step by step, and the sentences they end in.

A source has some prefixes, a prefix some continuations: rows are prefixes, and lists of rows belong
to what they continue. `sources` are lists by source, with an element for each list of rows.
"""

from __future__ import annotations

from psrt.graph.ops.table import OWN, ROWS, OpCall, TensorType, Types, define


@define(
    "beam_search",
    inputs="pre_ids pre_scores ids scores sources",
    outputs="ids_out scores_out sources_out parents",
    ragged="pre_ids pre_scores ids scores sources",
    lengths=OWN,
)
def beam_search(call: OpCall) -> Types:
    """The `beam_size` best of the continuations of all prefixes of each source.

    `ids` int64 and `scores` (prefixes, k) are those of each prefix, which are of the last words
    `pre_ids` int64 with `pre_scores` (prefixes,) or (prefixes, 1); `sources` has an element for
    each list of prefixes. A prefix that ends with `end_id` goes on as it is. Outputs: lists of
    words and scores by prefix, lists of prefixes by source, and the prefix of each. attrs:
    beam_size, end_id, is_accumulated.
    """
    pre_ids, pre_scores = call.one("pre_ids"), call.one("pre_scores")
    ids, scores = call.one("ids"), call.one("scores")
    for name, found in (("pre_ids", pre_ids), ("pre_scores", pre_scores)):
        fits = found.shape in ((ROWS,), (ROWS, 1))
        call.need(fits, f"argument {name} must hold one number a prefix, not {found}")
    call.need(pre_ids.dtype == ids.dtype == "int64", "arguments pre_ids and ids hold int64")
    call.need(scores.is_float and pre_scores.is_float, "scores are floats")
    fits = len(scores.shape) == 2 and ids.shape == scores.shape
    call.need(fits, f"argument ids is {ids}, argument scores is {scores}")
    _need_sources(call)
    call.need(call.attrs["beam_size"] >= 1, "a beam has 1 prefix or more")
    return {
        "ids_out": TensorType(pre_ids.shape, "int64", ragged=True),
        "scores_out": TensorType(pre_scores.shape, pre_scores.dtype, ragged=True),
        "sources_out": TensorType((ROWS,), "int64", ragged=True),
        "parents": TensorType((ROWS,), "int64"),
    }


@define(
    "beam_search_decode",
    inputs="ids scores lengths counts",
    outputs="ids_out scores_out sources_out",
    ragged="ids scores lengths counts",
    lengths=OWN,
)
def beam_search_decode(call: OpCall) -> Types:
    """The sentences of each source, of all steps of a beam search, best one first.

    The arguments have a list for each step: words and their scores, the lengths of their lists by
    prefix, and the numbers of prefixes by source. attrs: beam_size, end_id.
    """
    ids, scores = call.one("ids"), call.one("scores")
    fits = ids.dtype == "int64" and ids.shape in ((ROWS,), (ROWS, 1)) and scores.is_float
    call.need(fits, f"argument ids is {ids}, argument scores is {scores}")
    return {
        "ids_out": TensorType((ROWS,), "int64", ragged=True),
        "scores_out": TensorType((ROWS,), scores.dtype, ragged=True),
        "sources_out": TensorType((ROWS,), "int64", ragged=True),
    }


def _need_sources(call: OpCall) -> None:
    sources = call.one("sources")
    call.need(sources.ragged, f"argument sources is {sources}, not lists by source")
