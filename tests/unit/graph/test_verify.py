"""Refusals of the verifier, in programs that were read from text or rewritten."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from psrt import Model, Program, layers, optimizer, program
from psrt.core.errors import ProgramError
from psrt.graph.program import Op, Var
from psrt.graph.verify import verify


def linear() -> Program:
    with program() as p:
        out = layers.fc(layers.data("x", (3,)), 2, act="relu")
        table = layers.embedding(layers.data("ids", (1,), "int64"), (9, 2), is_sparse=True)
        both = layers.concat([out, layers.flatten(table)])
        layers.auc(layers.fc(both, 1, act="sigmoid"), layers.data("label"))
        Model(layers.mean(both), optimizer=optimizer.Sgd(0.1))
    return p


def change(p: Program, old_type: str, **fields: Any) -> None:
    """Replace fields of the first op of a type."""
    at = next(i for i, op in enumerate(p.ops) if op.type == old_type)
    p.ops[at] = dataclasses.replace(p.ops[at], **fields)


def swap_first_two(p: Program) -> None:
    relu = next(i for i, op in enumerate(p.ops) if op.type == "concat")
    p.ops.insert(0, p.ops.pop(relu))


def write_twice(p: Program) -> None:
    p.ops.insert(1, p.ops[0])


def declare_wrong_shape(p: Program) -> None:
    p.vars["fc_0.out"] = Var("fc_0.out", (-1, 7))


def declare_wrong_gradient(p: Program) -> None:
    wrong = dataclasses.replace(p.vars["fc_0.w_0@GRAD"], shape=(1, 1))
    p.vars["fc_0.w_0@GRAD"] = wrong


def forget_parameter(p: Program) -> None:
    del p.parameters["fc_0.b_0"]


def use_table_as_weight(p: Program) -> None:
    p.ops.append(Op("mean", {"x": ("embedding_0.w_0",)}, {"out": ("mean_0.out",)}))


def overwrite_data(p: Program) -> None:
    p.ops.append(Op("relu", {"x": ("x",)}, {"out": ("label",)}))


def empty_counts(p: Program) -> None:
    for name in ("auc_0.positives", "auc_0.negatives"):
        p.vars[name] = dataclasses.replace(p.vars[name], shape=(0,))


def misspell_dtype(p: Program) -> None:
    p.vars["x"] = dataclasses.replace(p.vars["x"], dtype="flaot32")


CASES: dict[str, tuple[Callable[[Program], None], str]] = {
    "read before computed": (
        swap_first_two,
        r"op concat of layer concat_0 \(test_verify.py:\d+\) reads fc_0.out before",
    ),
    "two writers": (write_twice, "op fc of layer fc_0 .* writes fc_0.out, which op fc"),
    "wrong shape": (
        declare_wrong_shape,
        r"writes fc_0.out declared as float32 \(-1, 7\), but computes float32 \(-1, 2\)",
    ),
    "wrong gradient": (declare_wrong_gradient, r"fc_0.w_0@GRAD of type float32 \(1, 1\)"),
    "parameter without record": (forget_parameter, "fc_0.b_0 is a parameter, but no parameter"),
    "sparse table as weight": (use_table_as_weight, "reads the sparse parameter embedding_0.w_0"),
    "data overwritten": (overwrite_data, "overwrites label, which is a data var"),
    "unknown op": (lambda p: change(p, "fc", type="gemm"), "op gemm .* is of an unknown type"),
    "unknown role": (lambda p: change(p, "fc", role="sideways"), "unknown role 'sideways'"),
    "missing argument": (lambda p: change(p, "fc", inputs={}), "got 0 vars as argument x"),
    "unknown argument": (
        lambda p: change(p, "mean", inputs={"y": ("x",)}),
        "op mean has no argument y",
    ),
    "unknown output": (
        lambda p: change(p, "concat", outputs={"side": ("concat_0.out",)}),
        r"writes slots \['side'\]",
    ),
    "undeclared var": (
        lambda p: change(p, "mean", inputs={"x": ("nowhere",)}),
        "reads nowhere, which is not declared",
    ),
    "missing attribute": (lambda p: change(p, "concat", attrs={}), "does not fit: 'axis'"),
    "attribute of another kind": (
        lambda p: change(p, "concat", attrs={"axis": "a"}),
        "op concat .* does not fit: '<=' not supported",
    ),
    "unknown dtype": (misspell_dtype, "Var x has the unknown dtype 'flaot32'"),
    "nameless var": (lambda p: change(p, "mean", inputs={"x": ("",)}), "var without a name"),
    "counts of no bins": (empty_counts, "op auc .* does not fit: argument bins is 0"),
}


def test_a_built_program_is_legal() -> None:
    verify(linear())


@pytest.mark.parametrize("case", CASES)
def test_illegal_program_is_refused(case: str) -> None:
    spoil, complaint = CASES[case]
    p = linear()
    spoil(p)

    with pytest.raises(ProgramError, match=complaint):
        verify(p)
