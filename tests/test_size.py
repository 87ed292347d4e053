"""Size is a budget someone prints: `bin/test tests/test_size.py -s` shows the table.

Aim at ≤ 200 lines a file and ≤ 25 a function; over the hard limits needs a reason here.
"""

from __future__ import annotations

import ast
import statistics
from collections import Counter
from pathlib import Path

from tests import house

FILE_LIMIT, FUNCTION_LIMIT, FOLDER_LIMIT = 300, 50, 20

EXCEPTIONS: dict[str, str] = {}
"""File, `file:function` or folder over its limit → reason."""


def sources() -> list[Path]:
    return sorted(house.modules().values())


def functions(path: Path) -> list[tuple[str, int]]:
    nodes = [
        node
        for node in house.nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in nodes]


def name_of(path: Path) -> str:
    return str(path.relative_to(house.ROOT))


def files_by_folder() -> Counter[str]:
    """Files of each folder, its `__init__.py` not counted."""
    return Counter(name_of(p.parent) for p in sources() if p.name != "__init__.py")


def classes() -> Counter[str]:
    nodes = (node for path in sources() for node in house.nodes(path))
    return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))


def test_files_functions_and_folders_stay_within_the_hard_limits() -> None:
    files = {name_of(path): len(path.read_text().splitlines()) for path in sources()}
    sizes = {
        f"{name_of(path)}:{name}": size for path in sources() for name, size in functions(path)
    }

    big = {name for name, size in files.items() if size > FILE_LIMIT}
    big |= {name for name, size in sizes.items() if size > FUNCTION_LIMIT}
    big |= {name for name, count in files_by_folder().items() if count > FOLDER_LIMIT}

    print_table(files, list(sizes.values()))
    assert big == set(EXCEPTIONS)


def test_the_median_function_is_under_ten_lines() -> None:
    lines = [size for path in sources() for _, size in functions(path)]

    assert statistics.median(lines) < 10


def test_no_class_name_is_given_twice() -> None:
    assert [name for name, count in classes().items() if count > 1] == []


def print_table(files: dict[str, int], function_lines: list[int]) -> None:
    folders: dict[str, list[int]] = {}
    for name, size in files.items():
        folders.setdefault(str(Path(name).parent), []).append(size)
    print(f"\n{'folder':<60}{'files':>6}{'lines':>8}{'biggest':>9}")
    for folder, lines in sorted(folders.items()):
        print(f"{folder:<60}{len(lines):>6}{sum(lines):>8}{max(lines):>9}")
    p90 = statistics.quantiles(function_lines, n=10)[-1]
    fullest, most = files_by_folder().most_common(1)[0]
    doubled = sum(count > 1 for count in classes().values())
    print(
        f"total {sum(files.values())} lines in {len(files)} files; functions: "
        f"{len(function_lines)}, median {statistics.median(function_lines)}, p90 {p90:.0f}\n"
        f"most files in a folder: {most} ({fullest}); class names given twice: {doubled}; "
        f"imports past a face: {len(house.imports_past_a_face())}"
    )
