"""Losses over many classes that compute a few: sampled negatives, sampled softmax, trees.

Classes are rows of one table of `num_total_classes` rows, which may be sparse or distributed: a
step reads and trains the rows of its labels and of the classes it draws or passes. Drawn classes
are a pure function of (seed, step, example, position).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from psrt.core.attributes import plain
from psrt.graph.arguments import are_several
from psrt.graph.builder import Layer, Vars
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.param import Param
from psrt.graph.program import Var, seed_of

Bias = Param | str | Literal[False] | None


def nce(
    input: Var,
    label: Var,
    num_total_classes: int,
    param: Param | str | None = None,
    bias: Bias = None,
    num_neg_samples: int = 10,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
    is_distributed: bool = False,
) -> Var:
    """Noise-contrastive estimation: input (rows, d), int64 label (rows, 1) → cost (rows, 1).

    Each example separates its label from k classes drawn for it, by s − log(k · P(class)) with the
    score s = input · row + bias: cost = −log σ at the label − Σ log(1 − σ) at the drawn ones
    (Gutmann & Hyvärinen 2012). Samplers: "uniform"; "log_uniform", P(c) ∝ log((c + 2) / (c + 1)),
    for classes sorted by falling frequency; "custom_dist" with a weight for each class. `seed` 0
    derives one from the program's.
    """
    layer = Layer("nce")
    num_total_classes = layer.whole("num_total_classes", num_total_classes)
    drawing = _drawing(layer, num_total_classes, num_neg_samples, sampler, custom_dist, seed)
    drawn = layer.ops("draw_negatives", {"label": label}, is_corrected=True, **drawing)
    table = _ClassTable(layer, input, num_total_classes, param, bias, is_sparse, is_distributed)
    logits = table.scores(drawn["out"])
    inputs: dict[str, Vars] = {"logits": logits, "log_expected": drawn["log_expected"]}
    return layer.op("noise_contrastive_loss", inputs)


def negative_sampling_loss(
    input: Var,
    label: Var,
    num_total_classes: int,
    param: Param | str | None = None,
    bias: Bias = False,
    num_neg_samples: int = 5,
    sampler: str = "log_uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
    is_distributed: bool = False,
) -> Var:
    """Negative sampling of word2vec: −log σ(s_label) − Σ log σ(−s) over drawn classes.

    (rows, d), int64 label (rows, 1) → (rows, 1): `nce` without log(k · P), which learns vectors,
    not probabilities (Mikolov et al. 2013, "Distributed representations of words and phrases",
    equation 4). word2vec draws from counts ** 0.75: give these as `custom_dist`.
    """
    layer = Layer("negative_sampling_loss")
    num_total_classes = layer.whole("num_total_classes", num_total_classes)
    drawing = _drawing(layer, num_total_classes, num_neg_samples, sampler, custom_dist, seed)
    drawn = layer.op("draw_negatives", {"label": label}, is_corrected=False, **drawing)
    table = _ClassTable(layer, input, num_total_classes, param, bias, is_sparse, is_distributed)
    return layer.op("noise_contrastive_loss", {"logits": table.scores(drawn)})


def sampled_softmax_with_cross_entropy(
    input: Var,
    label: Var,
    num_total_classes: int,
    num_samples: int,
    param: Param | str | None = None,
    bias: Bias = None,
    sampler: str = "log_uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    remove_accidental_hits: bool = True,
    is_sparse: bool = False,
    is_distributed: bool = False,
) -> Var:
    """Softmax cross-entropy over the label and drawn classes: (rows, d) → (rows, 1).

    Scores are corrected by log(k · P(class)), so that the expected gradient is near that of the
    full softmax (Jean et al. 2015, "On using very large target vocabulary"). Unlike Fluid's layer,
    this one draws before it computes scores, and computes those of the sample only. Samples equal
    to the label of an example are left out for it, unless `remove_accidental_hits` is False.
    Samplers: see `nce`.
    """
    layer = Layer("sampled_softmax_with_cross_entropy")
    num_total_classes = layer.whole("num_total_classes", num_total_classes)
    drawing = _drawing(layer, num_total_classes, num_samples, sampler, custom_dist, seed)
    drawn = layer.ops("draw_classes", {"label": label}, **drawing)
    table = _ClassTable(layer, input, num_total_classes, param, bias, is_sparse, is_distributed)
    inputs: dict[str, Vars] = {
        "true_logits": table.scores(label),
        "logits": table.scores(drawn["out"]),
        "label": label,
        "samples": drawn["out"],
        "log_expected": drawn["log_expected"],
        "label_log_expected": drawn["label_log_expected"],
    }
    attrs = {"remove_accidental_hits": remove_accidental_hits}
    return layer.op("sampled_softmax_loss", inputs, **attrs)


def hsigmoid(
    input: Var,
    label: Var,
    num_classes: int,
    param: Param | str | None = None,
    bias: Bias = None,
    path_table: Var | None = None,
    path_code: Var | None = None,
    is_sparse: bool = False,
    is_distributed: bool = False,
) -> Var:
    """Hierarchical sigmoid, −log P(path of the label in a binary tree): (rows, d) → (rows, 1).

    Each inner node is a row of parameters that decides one turn: Σ −log σ(±(input · row + bias))
    along the path (Morin & Bengio 2005). The default tree is complete: class c is the leaf
    num_classes + c when nodes are numbered from 1 at the root and i has the children 2i and 2i + 1;
    it has num_classes − 1 inner nodes and paths of at most ⌈log₂ num_classes⌉ turns. Another tree
    is fed, int64 (rows, length): `path_table` holds the inner nodes of each example's label,
    `path_code` the turns 0 or 1, both ended by −1; `num_classes` is then the number of inner nodes.
    """
    layer = Layer("hsigmoid")
    num_classes = layer.whole("num_classes", num_classes)
    if (path_table is None) != (path_code is None):
        raise layer.error("arguments path_table and path_code belong together, one was given")
    if path_table is None or path_code is None:
        path = layer.ops("tree_path", {"label": label}, num_classes=num_classes)
        nodes = num_classes - 1
    else:
        fed: dict[str, Vars] = {"path_table": path_table, "path_code": path_code}
        path = layer.ops("custom_path", fed, num_classes=num_classes)
        nodes = num_classes
    table = _ClassTable(layer, input, nodes, param, bias, is_sparse, is_distributed)
    return layer.op("path_loss", {"logits": table.scores(path["out"]), "signs": path["signs"]})


def _drawing(
    layer: Layer,
    num_classes: int,
    num_samples: int,
    sampler: str,
    custom_dist: Sequence[float] | None,
    seed: int,
) -> dict[str, Any]:
    """Attributes of an op that draws."""
    return {
        "num_classes": num_classes,
        "num_samples": num_samples,
        "sampler": sampler,
        "probabilities": () if custom_dist is None else _weights(layer, custom_dist),
        "seed": layer.whole("seed", seed) or seed_of(layer.program.seed, layer.name),
    }


def _weights(layer: Layer, custom_dist: Any) -> tuple[float, ...]:
    """Weight of each class: there may be millions."""
    try:
        if are_several(custom_dist):
            return tuple(float(weight) for weight in plain(custom_dist))
    except (TypeError, ValueError):
        pass
    raise layer.error(f"argument custom_dist is {custom_dist!r}, not a list of numbers")


class _ClassTable:
    """Weights (classes, d) of all classes, and their biases in a table of width 1."""

    def __init__(
        self,
        layer: Layer,
        input: Var,
        height: int,
        param: Param | str | None,
        bias: Bias,
        is_sparse: bool,
        is_distributed: bool,
    ) -> None:
        (self.input,) = layer.checked("input", input)
        if len(input.shape) != 2:
            raise layer.error(f"argument input must have 2 dimensions, not {input.type}")
        self.layer = layer
        distributed = layer.flag("is_distributed", is_distributed)
        sparse = layer.flag("is_sparse", is_sparse) or distributed
        where = {"sparse": sparse, "distributed": distributed}
        shape = (height, input.shape[1])
        self.w = layer.parameter("w_0", shape, param, Xavier(), **where)
        self.biases: list[Var] = []
        if bias is not False:
            self.biases = [layer.parameter("b_0", (height, 1), bias, Constant(0.0), **where)]

    def scores(self, ids: Var) -> Var:
        """Scores input · row + bias of ids: (rows, k), or (1, k) for ids all examples share."""
        w, *biases = [
            self.layer.op("embedding", {"ids": ids, "table": table}, padding_id=None)
            for table in [self.w, *self.biases]
        ]
        return self.layer.op("row_dot", {"input": self.input, "w": w, "bias": biases})
