"""`fluid.dygraph`: names that can be imported, and raise `ConfigError` when used.

Programs import them beside a path for programs, such as tests of both.
"""

from __future__ import annotations

import sys

from psrt.fluid.names import refusing_class

_PATHS = ("base", "checkpoint", "jit", "layers", "learning_rate_scheduler", "nn", "parallel")
"""PaddlePaddle's modules below it, all of which are this one."""

__path__: list[str] = []  # `import paddle.fluid.dygraph.nn` asks for a package

sys.modules.update((f"{__name__}.{path}", sys.modules[__name__]) for path in _PATHS)

__all__: list[str] = []


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _PATHS:
        return sys.modules[__name__]
    hint = "psrt runs programs: write layers into the default main program."
    return refusing_class("fluid.dygraph", name, "graphs that are built while they run", hint)
