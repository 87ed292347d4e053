"""An import hook by which `import paddle.fluid as fluid` means `psrt.fluid`, in this process alone.

`paddle.fluid.X` is the module `psrt.fluid.X`, the same object; `paddle.reader` and `paddle.batch`
are those of `psrt.reader`. Nothing is written anywhere: other processes are not affected.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from psrt.core.errors import ConfigError
from psrt.fluid.names import ModulePaths, missing

_ROOMS = {
    "paddle.compat": "psrt.fluid.paddle.compat",
    "paddle.dataset": "psrt.fluid.paddle.dataset",
    "paddle.fluid": "psrt.fluid",
    "paddle.reader": "psrt.reader",
    "paddle.version": "psrt.fluid.paddle.version",
}


_INSTEAD = "Of paddle it has fluid, reader, batch, dataset; `psrt launch` starts processes."


def install_as_paddle() -> ModuleType:
    """Let `import paddle` mean psrt from here on; returns that module. Again, it has no effect.

    Raises `ConfigError` if another `paddle` was imported before.
    """
    found = sys.modules.get("paddle")
    if isinstance(found, PaddleModule):
        return found
    if found is not None:
        raise ConfigError(
            f"install_as_paddle was called, but another paddle was imported, from {found}.",
            hint="Call it before anything that imports paddle.",
        )
    sys.meta_path.insert(0, _PaddlePaths(_ROOMS))
    sys.modules["paddle"] = made = PaddleModule("paddle")
    return made


class PaddleModule(ModuleType):
    """The module `paddle`: its rooms are imported when they are used."""

    __path__ = []  # noqa: RUF012 (ModuleType declares it)

    def __getattr__(self, name: str) -> object:
        full = f"{self.__name__}.{name}"
        if full in _ROOMS:
            return importlib.import_module(full)
        if name == "batch":
            return importlib.import_module("psrt.reader").batch
        if name == "__version__":
            return importlib.import_module("psrt.fluid.names").FLUID_VERSION
        raise AttributeError(f"psrt has no paddle.{name}. {_INSTEAD}", name=name)


class _PaddlePaths(ModulePaths):
    """Finder of the modules below `paddle`."""

    def own_name(self, path: str) -> str:
        for room, own in _ROOMS.items():
            if path == room or path.startswith(f"{room}."):
                return own + path.removeprefix(room)
        return ""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.startswith("paddle.") and not self.own_name(name):
            raise ModuleNotFoundError(f"psrt has no {name}. {_INSTEAD}", name=name)
        return super().find_spec(name, path, target)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        try:
            super().exec_module(module)
        except ModuleNotFoundError as error:
            if error.name != self.own_name(name):
                raise
            room, _, last = name.rpartition(".")
            raise ModuleNotFoundError(str(missing(room, last, ())), name=name) from None
        if name == "paddle.reader":  # a package there, one file here
            sys.modules["paddle.reader.decorator"] = sys.modules[name]
