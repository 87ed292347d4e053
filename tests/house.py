"""The house as data: rooms, sub-rooms and imports of psrt, read from its sources.

A room is a folder of `psrt`, a sub-room a folder below a room. The face of a sub-room is the
`__all__` of its `__init__.py`; files directly in a room are open to every room that may import it.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "psrt"
DESIGN = ROOT / "docs" / "ARCHITECTURE.md"

PUBLIC_PATHS = ("psrt.fluid.incubate", "psrt.fluid.distributed", "psrt.fluid.contrib")
"""Packages whose module paths are PaddlePaddle's, so that programs import them as they stand."""


@dataclass(frozen=True)
class Import:
    """One imported name: `name` of `module`; `name` is empty for `import module`."""

    file: Path
    line: int
    module: str
    name: str

    @property
    def where(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    @property
    def target(self) -> str:
        """The module that is imported, be it named as a module or as a name of its package."""
        full = f"{self.module}.{self.name}"
        return full if full in modules() else self.module


@functools.cache
def modules() -> dict[str, Path]:
    """Dotted name → file, without generated code and the templates of `psrt init`."""
    left_out = {"pb", "templates"}
    found = sorted(p for p in PACKAGE.rglob("*.py") if left_out.isdisjoint(p.parts[:-2]))
    return {module_of(path): path for path in found if "pb2" not in path.stem}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_package(module: str) -> bool:
    return modules()[module].name == "__init__.py"


def package_of(module: str) -> str:
    """The package a module lies in; a package lies in itself."""
    return module if is_package(module) else module.rpartition(".")[0]


@functools.cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file, which is kept and which no later collection of garbage visits."""
    gc.disable()  # a tree has no garbage, and thousands of objects
    try:
        return ast.parse(path.read_text())
    finally:
        gc.freeze()
        gc.enable()


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree, which take longer to walk than to make."""
    return tuple(ast.walk(tree(path)))


@functools.cache
def imports_of(module: str) -> tuple[Import, ...]:
    """The psrt imports of a module, wherever in it they are written."""
    return tuple(_imports(modules()[module]))


def _imports(path: Path) -> Iterator[Import]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("psrt."):
                    yield Import(path, node.lineno, alias.name, "")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("psrt"):
            assert node.level == 0, f"{path}:{node.lineno} relative import"
            for alias in node.names:
                yield Import(path, node.lineno, str(node.module), alias.name)


@functools.cache
def rooms() -> list[str]:
    return sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def sub_rooms() -> list[str]:
    """Dotted names of all packages below a room, but for those with public paths."""
    return [
        name
        for name in modules()
        if name.count(".") >= 2 and is_package(name) and not name.startswith(PUBLIC_PATHS)
    ]


def face_between(importer: str, target: str) -> str | None:
    """The outermost sub-room around `target` that `importer` lies outside of."""
    if target not in modules():
        return None
    home, parts = package_of(importer), package_of(target).split(".")
    for depth in range(3, len(parts) + 1):
        face = ".".join(parts[:depth])
        if face.startswith(PUBLIC_PATHS):
            return None
        if home != face and not home.startswith(f"{face}."):
            return face
    return None


def imports_past_a_face() -> list[str]:
    """Each import of something that its sub-room does not export, with its place."""
    return [
        f"{each.where} takes {each.name or each.module} from {each.module}, past {face}"
        for module in modules()
        for each in imports_of(module)
        if (face := face_between(module, each.target)) is not None
        and not (each.module == face and each.name in (names_of_face(face) or []))
        and each.target != face
    ]


def names_of_face(face: str) -> list[str] | None:
    """The names in `__all__` of a package, from one or several statements; None without one."""
    found: list[str] | None = None
    for node in tree(modules()[face]).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            value = getattr(node, "value", None)
            found = (found or []) + [str(name) for name in ast.literal_eval(value)]
    return found


def needs(module: str) -> set[str]:
    """The modules that must be loaded before `module`; of a foreign sub-room, its face."""
    found = set()
    for each in imports_of(module):
        if each.target in modules() and each.target.count(".") > 0:
            found.add(face_between(module, each.target) or each.target)
    return found - {module}


def layer_lines(fence: str) -> list[re.Match[str]]:
    """The lines of a fenced block of the design file: number (may lack), name, what it imports."""
    block = re.search(rf"```{fence}\n(.*?)```", DESIGN.read_text(), re.S)
    assert block, f"docs/ARCHITECTURE.md has no ```{fence} block"
    found = []
    for line in block[1].strip().splitlines():
        match = re.match(r"(\d+)? *([\w/]+)\s*:\s*(.*)", line)
        assert match, f"layer line not understood: {line!r}"
        found.append(match)
    return found


def imported_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Local name and full name of everything imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def dotted(node: ast.expr, imported: dict[str, str]) -> str:
    """The full name of what `node` refers to, by `imported_names`; empty if it was not imported."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, "")
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, imported)}.{node.attr}"
    return ""
