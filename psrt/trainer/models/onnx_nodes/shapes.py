"""Ops that move elements."""

from __future__ import annotations

from psrt.trainer.models.onnx_nodes.table import Drawing, exports


@exports("concat")
def concat(d: Drawing) -> None:
    d.node("Concat", d.all("x"), d.out(), axis=d.attrs["axis"])


@exports("stack")
def stack(d: Drawing) -> None:
    axis = d.attrs["axis"]
    parts = [d.node("Unsqueeze", (x, d.ints(axis))) for x in d.all("x")]
    d.node("Concat", parts, d.out(), axis=axis)


@exports("slice")
def slice_of(d: Drawing) -> None:
    limits = (d.ints(*d.attrs[name]) for name in ("starts", "ends", "axes"))
    d.node("Slice", (d.one("input"), *limits), d.out())


@exports("reshape")
def reshape(d: Drawing) -> None:
    d.node("Reshape", (d.one("x"), d.ints(*d.attrs["shape"])), d.out())


@exports("transpose")
def transpose(d: Drawing) -> None:
    d.node("Transpose", (d.one("x"),), d.out(), perm=list(d.attrs["perm"]))


@exports("expand")
def expand(d: Drawing) -> None:
    d.node("Tile", (d.one("x"), d.ints(*d.attrs["expand_times"])), d.out())
