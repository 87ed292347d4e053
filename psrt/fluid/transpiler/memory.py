"""`memory_optimize`: vars of a step whose lives do not overlap share memory."""

from __future__ import annotations

from collections.abc import Iterable

from psrt.core.errors import ProgramError
from psrt.fluid.block import MemoryReuse
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable


def memory_optimize(
    input_program: FluidProgram,
    skip_opt_set: Iterable[str | Variable] | None = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = False,
) -> None:
    """Mark a trainer's program, before it is transpiled, to share memory between vars.

    `skip_grads` excludes gradients, needed where they are sent. `skip_opt_set` are vars that will
    be fetched; those of a fetch list are kept anyway. Raises `ProgramError` for a pserver's
    program, which has no steps, and for a transpiled one.
    """
    if input_program.job is not None:
        raise ProgramError(
            "memory_optimize was given a transpiled program.",
            hint="On a trainer call it before transpile; a pserver holds tables and has nothing "
            "to share.",
        )
    kept = (var if isinstance(var, str) else var.name for var in skip_opt_set or ())
    input_program.memory = MemoryReuse(skip_grads, frozenset(kept))


def release_memory(input_program: FluidProgram, skip_opt_set: Iterable[str] | None = None) -> None:
    """Mark the program as `memory_optimize` does; Fluid frees memory after each op instead."""
    memory_optimize(input_program, skip_opt_set)


__all__ = ["memory_optimize", "release_memory"]
