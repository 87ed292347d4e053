"""Threads are constructed in `psrt/core/threads.py` alone: a crash of others goes unreported.

Pools of `concurrent.futures` are no threads in this sense: their futures hand errors to a caller.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house import PACKAGE, ROOT, dotted, imported_names, tree

CONSTRUCTOR = PACKAGE / "core" / "threads.py"
NAMES = {"threading.Thread", "threading.Timer", "_thread.start_new_thread", "_thread.start_new"}


def constructed(tree: ast.AST) -> Iterator[int]:
    """Lines that call or subclass one of NAMES, under whatever name it was imported."""
    nodes = tuple(ast.walk(tree))
    imported = dict(imported_names(nodes))
    for node in nodes:
        used: list[ast.expr] = []
        if isinstance(node, ast.Call):
            used = [node.func, *node.args]  # of partial, too
        elif isinstance(node, ast.ClassDef):
            used = node.bases
        for each in used:
            if dotted(each, imported) in NAMES:
                yield each.lineno


def test_only_one_file_constructs_threads() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != CONSTRUCTOR
        for line in constructed(tree(path))
    }

    assert found == set()
    assert list(constructed(tree(CONSTRUCTOR)))


@pytest.mark.parametrize(
    "source",
    [
        "import threading\nthreading.Thread(target=print)",
        "import threading\nthreading.Timer(1.0, print)",
        "import threading\nclass Mine(threading.Thread): ...",
        "import threading as t\nt.Thread(target=print)",
        "from threading import Thread\nThread(target=print)",
        "from threading import Timer as Later\nclass Mine(Later): ...",
        "from functools import partial\nimport threading\npartial(threading.Thread, target=print)",
        "import _thread\n_thread.start_new_thread(print, ())",
    ],
)
def test_every_way_to_construct_one_is_found(source: str) -> None:
    assert list(constructed(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "import threading\nthreads: list[threading.Thread] = [threading.current_thread()]",
        "from threading import Thread\ndef join(threads: list[Thread]) -> None: ...",
        "import threading\nclass Mine(threading.local): ...",
        "from psrt.core.threads import start_thread\nstart_thread(print, 'name', None)",
    ],
)
def test_what_only_names_threads_is_allowed(source: str) -> None:
    assert not list(constructed(ast.parse(source)))
