"""`fluid.op`: names that can be imported, and raise `ConfigError` when used.

Tests of programs import helpers that make single ops beside programs.
"""

from __future__ import annotations

from psrt.fluid.names import refusing_class

__all__: list[str] = []


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    hint = "Write layers into a program, and run it with fluid.Executor."
    return refusing_class("fluid.op", name, "an op outside of programs", hint)
