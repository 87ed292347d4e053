"""The parameters that one backward pass is to train."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from psrt.core.errors import ProgramError
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable, names_among

Names: TypeAlias = Iterable[str | Variable]


@contextmanager
def only_training(
    program: FluidProgram, trained: Names | None, frozen: Names | None
) -> Iterator[None]:
    """Let a backward pass in the block leave out parameters: those not among `trained`, if given,
    and those among `frozen`. Another loss may train them.
    """
    records = program.graph.parameters
    kept = set(records) if trained is None else names_among(trained)
    out = names_among(frozen or ())
    strangers = (kept | out) - records.keys()
    if strangers:
        raise ProgramError(
            f"minimize names {', '.join(sorted(strangers))}, which is no parameter of the program.",
            hint="Gradients are cut at parameters alone.",
        )
    left_out = [name for name in (records.keys() - kept) | out if records[name].trainable]
    for name in left_out:
        records[name] = dataclasses.replace(records[name], trainable=False)
    try:
        yield
    finally:
        for name in left_out:
            records[name] = dataclasses.replace(records[name], trainable=True)


__all__ = ["Names", "only_training"]
