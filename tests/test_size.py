"""Size is a budget someone prints: `bin/test tests/test_size.py -s` shows the table.

Aim at ≤ 200 lines a file and ≤ 25 a function; over the hard limits needs a reason here.
"""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LIMIT, FUNCTION_LIMIT = 400, 50

EXCEPTIONS: dict[str, str] = {}


def sources() -> list[Path]:
    return sorted(p for p in (ROOT / "psrt").rglob("*.py") if "pb" not in p.parts)


def functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text())
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in nodes]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_files_and_functions_stay_within_the_hard_limits() -> None:
    files = {name_of(path): len(path.read_text().splitlines()) for path in sources()}
    sizes = {
        f"{name_of(path)}:{name}": size for path in sources() for name, size in functions(path)
    }

    big = {name for name, size in files.items() if size > FILE_LIMIT}
    big |= {name for name, size in sizes.items() if size > FUNCTION_LIMIT}

    print_table(files, list(sizes.values()))
    assert big == set(EXCEPTIONS)


def test_the_median_function_is_under_ten_lines() -> None:
    lines = [size for path in sources() for _, size in functions(path)]

    assert statistics.median(lines) < 10


def print_table(files: dict[str, int], function_lines: list[int]) -> None:
    rooms: dict[str, list[int]] = {}
    for name, size in files.items():
        rooms.setdefault(name.split("/")[1], []).append(size)
    print(f"\n{'room':<16}{'files':>6}{'lines':>8}{'biggest':>9}")
    for room, lines in sorted(rooms.items()):
        print(f"{room:<16}{len(lines):>6}{sum(lines):>8}{max(lines):>9}")
    p90 = statistics.quantiles(function_lines, n=10)[-1]
    print(
        f"total {sum(files.values())} lines; functions: median "
        f"{statistics.median(function_lines)}, p90 {p90:.0f}"
    )
