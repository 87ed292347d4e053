"""Layers that draw numbers.

What is drawn is a pure function of the seed of the layer, the step, the example and the position in
it: runs can be repeated, and replicas draw what one executor with the whole batch would draw.
"""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.program import Var, seed_of


def dropout(
    x: Var,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Var:
    """Set each element to 0 with probability `dropout_prob`, p in short.

    "downgrade_in_infer" trains on what is kept as it is, and multiplies by 1 − p in a test;
    "upscale_in_train" divides what is kept by 1 − p, and passes everything in a test.
    `program.clone(for_test=True)` sets `is_test`.

    Without a `seed` every step draws a new mask, from the seed of the program and the name of the
    layer. A `seed` of your own gives the same mask in every step, as in Fluid: for comparisons, not
    for training. The rows of a ragged `x` are elements, which are counted within a replica: there
    replicas draw other masks than one executor with the whole batch.
    """
    layer = Layer("dropout")
    return layer.op(
        "dropout",
        {"x": x},
        p=float(layer.number("dropout_prob", dropout_prob)),
        implementation=dropout_implementation,
        seed=seed_of(layer.program.seed, layer.name) if seed is None else seed,
        fix_seed=seed is not None,
        is_test=is_test,
    )
