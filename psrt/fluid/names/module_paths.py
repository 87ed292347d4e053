"""Second paths of modules: importing one gives the module itself, not a copy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class ModulePaths(MetaPathFinder, Loader):
    """Finder of modules by second paths; `modules` has the module's own name for each path."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def own_name(self, path: str) -> str:
        """Return the own name of the module of a path, "" if it is no path of this finder."""
        return self._modules.get(path, "")

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if self.own_name(name) else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        path = module.__name__
        sys.modules[path] = importlib.import_module(self.own_name(path))
