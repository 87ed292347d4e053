"""Layers that draw random numbers.

A drawn number is a pure function of the layer's seed, the step, the example and the position in it.
So runs can be repeated, and replicas draw the numbers of one executor with the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.ops import ROWS
from psrt.graph.program import Var, seed_of


def dropout(
    x: Var,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Var:
    """Set each element to 0 with probability p = `dropout_prob` (Srivastava et al. 2014).

    "downgrade_in_infer" keeps the others in training and multiplies by 1 − p in a test;
    "upscale_in_train" divides the others by 1 − p in training and changes nothing in a test.
    `program.clone(for_test=True)` sets `is_test`.

    Without a `seed` every step draws a new mask, from the seed of the program and the name of the
    layer. With a `seed` all steps have one mask, as in Fluid: for comparisons, not for training.
    Rows of a ragged `x` are elements, counted within a replica, so there replicas draw other masks
    than one executor with the whole batch.
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


def shuffle_rows(x: Var, seed: int | None = None) -> Var:
    """Rows of `x`, all dimensions but the last, in an order that is drawn in every step.

    With a `seed` all steps have one order. Replicas shuffle the rows of their shares.
    """
    layer = Layer("shuffle_rows")
    drawn = seed_of(layer.program.seed, layer.name) if seed is None else layer.whole("seed", seed)
    return layer.op("shuffle_rows", {"x": x}, seed=drawn, fix_seed=seed is not None)


def uniform_random(
    shape: Sequence[int],
    min: float = -1.0,
    max: float = 1.0,
    seed: int | None = None,
    input: Var | None = None,
) -> Var:
    """Numbers between `min` and `max`, drawn anew in every step, or, with a `seed`, equal ones.

    The first size may be -1, as many examples as `input` has. No gradient.
    """
    return _drawn("uniform_random", shape, min, max, seed, input)


def gaussian_random(
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    seed: int | None = None,
    input: Var | None = None,
) -> Var:
    """Numbers of a normal distribution; other arguments are those of `uniform_random`."""
    return _drawn("gaussian_random", shape, mean, std, seed, input)


def _drawn(
    kind: str, shape: Sequence[int], a: float, b: float, seed: int | None, input: Var | None
) -> Var:
    layer = Layer(kind)
    sizes = layer.wholes("shape", shape)
    return layer.op(
        kind,
        {} if input is None or sizes[:1] != (ROWS,) else {"input": input},
        shape=sizes,
        a=float(layer.number("a", a)),
        b=float(layer.number("b", b)),
        seed=seed_of(layer.program.seed, layer.name) if seed is None else seed,
        fix_seed=seed is not None,
    )
