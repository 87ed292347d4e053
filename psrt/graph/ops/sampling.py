"""Losses over many classes that compute a few: drawn classes, paths in a tree, their products.

Ids come from labels only, never from parameters, so their rows may be in sparse tables. attrs of
the ops that draw: `num_classes`, `num_samples`, `sampler` (uniform, log_uniform, or custom_dist
with `probabilities`), `seed`.
"""

from __future__ import annotations

from psrt.graph.ops.table import ROWS, OpCall, TensorType, Types, define

SAMPLERS = ("uniform", "log_uniform", "custom_dist")


def _need_label(call: OpCall) -> None:
    label = call.one("label")
    fits = label.dtype == "int64" and label.shape == (ROWS, 1)
    call.need(fits, f"argument label must be int64 (-1, 1), not {label}")


def _need_sampler(call: OpCall) -> None:
    classes, count, sampler = (call.attrs[n] for n in ("num_classes", "num_samples", "sampler"))
    call.need(classes > 1, f"argument num_total_classes is {classes}, not 2 or more")
    call.need(count > 0, f"the number of samples is {count}, not 1 or more")
    call.need(
        sampler in SAMPLERS, f"argument sampler is {sampler!r}, not one of {', '.join(SAMPLERS)}"
    )
    probabilities = call.attrs["probabilities"]
    expected = classes if sampler == "custom_dist" else 0
    call.need(
        len(probabilities) == expected,
        f"argument custom_dist has {len(probabilities)} probabilities, "
        f"the sampler {sampler!r} of {classes} classes takes {expected}",
    )
    positive = all(probability > 0 for probability in probabilities)
    call.need(positive, "argument custom_dist must give every class a probability above 0")


@define("draw_negatives", inputs="label", outputs="out log_expected?")
def draw_negatives(call: OpCall) -> Types:
    """Each example's label in column 0, then classes drawn for it: (rows, 1 + num_samples).

    attrs: is_corrected, for `log_expected`: log(num_samples · P(class)), the expected number of
    draws.
    """
    _need_label(call)
    _need_sampler(call)
    shape = (ROWS, 1 + call.attrs["num_samples"])
    corrections = {"log_expected": TensorType(shape)} if call.attrs["is_corrected"] else {}
    return {"out": TensorType(shape, "int64")} | corrections


@define("draw_classes", inputs="label", outputs="out log_expected label_log_expected")
def draw_classes(call: OpCall) -> Types:
    """Classes that all examples of the step share, (1, num_samples); labels are only checked.

    `log_expected` is that of the drawn classes, `label_log_expected` (rows, 1) that of the labels.
    """
    _need_label(call)
    _need_sampler(call)
    shape = (1, call.attrs["num_samples"])
    return {
        "out": TensorType(shape, "int64"),
        "log_expected": TensorType(shape),
        "label_log_expected": TensorType((ROWS, 1)),
    }


def _paths(length: int) -> Types:
    shape = (ROWS, length)
    return {"out": TensorType(shape, "int64"), "signs": TensorType(shape)}


@define("tree_path", inputs="label", outputs="out signs")
def tree_path(call: OpCall) -> Types:
    """Inner nodes on the path of each label in the default tree, and +1 or −1 for the turn taken.

    attrs: num_classes. Shorter paths are filled up with the root at sign 0.
    """
    _need_label(call)
    classes = call.attrs["num_classes"]
    call.need(classes > 1, f"argument num_classes is {classes}, not 2 or more")
    return _paths((classes - 1).bit_length())  # the longest path: ⌈log₂ classes⌉


@define("custom_path", inputs="path_table path_code", outputs="out signs")
def custom_path(call: OpCall) -> Types:
    """Fed paths: nodes, and codes 0 or 1, (rows, length), ended by −1.

    attrs: num_classes, the number of inner nodes.
    """
    table, code = call.need_ndim("path_table", 2), call.need_ndim("path_code", 2)
    for slot, found in (("path_table", table), ("path_code", code)):
        call.need(found.dtype == "int64", f"argument {slot} must hold int64, not {found}")
    call.need(code == table, f"argument path_code is {code}, argument path_table is {table}")
    return _paths(table.shape[1])


@define("row_dot", inputs="input w bias?")
def row_dot(call: OpCall) -> Types:
    """Input (n, d) times its own rows w (n, k, d), or rows w (1, k, d) all share: (n, k).

    `bias` (n, k, 1) or (1, k, 1) is added.
    """
    x, w = call.need_float("input"), call.need_ndim("w", 3)
    call.need_ndim("input", 2)
    fits = w.shape[0] in (ROWS, 1) and w.shape[2] == x.shape[1]
    call.need(fits, f"argument input is {x}, argument w is {w}")
    for bias in call.many("bias"):
        call.need(bias.shape == (*w.shape[:2], 1), f"argument bias is {bias}, argument w is {w}")
    return {"out": x.reshaped((ROWS, w.shape[1]))}


@define("noise_contrastive_loss", inputs="logits log_expected?")
def noise_contrastive_loss(call: OpCall) -> Types:
    """Σ −log σ(±x), + in column 0 and − elsewhere, for x = logits − log_expected: (rows, 1)."""
    return {"out": call.need_float("logits").reshaped((ROWS, 1))}


@define("path_loss", inputs="logits signs")
def path_loss(call: OpCall) -> Types:
    """Σ −log σ(sign · logit) over the nodes of each path: (rows, 1)."""
    logits, signs = call.need_float("logits"), call.one("signs")
    call.need(signs.shape == logits.shape, f"the signs are {signs}, the logits {logits}")
    return {"out": logits.reshaped((ROWS, 1))}


@define(
    "sampled_softmax_loss",
    inputs="true_logits logits label samples log_expected label_log_expected",
    outputs="out softmax",
)
def sampled_softmax_loss(call: OpCall) -> Types:
    """−log softmax of (label, samples), logits minus log_expected, at the label: (rows, 1).

    attrs: remove_accidental_hits, which omits samples equal to the label.
    """
    logits = call.need_float("logits")
    return {
        "out": logits.reshaped((ROWS, 1)),
        "softmax": logits.reshaped((ROWS, 1 + logits.shape[1])),
    }
