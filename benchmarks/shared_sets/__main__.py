"""Rows of public sample data sets, read in their published formats.

    python -m benchmarks.shared_sets FOLDER [--only NAME]

FOLDER has one directory for each set: adult, criteo, libsvm, mnist_t10k, paddlerec_samples (the
sample files of PaddleRec's models), ptb, text8_head and uci_housing. Prints one JSON object, rows
by file; missing sets are omitted. Exits with 1 if a file cannot be read. Writes temporary files
only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.shared_sets.sets import SETS
from psrt.core.errors import PsrtError


def found(folder: Path, only: str) -> Iterator[tuple[str, int | str]]:
    """(file, its number of rows, or the error)."""
    for pattern, count in SETS.items():
        for path in sorted(folder.glob(pattern)):
            name = str(path.relative_to(folder))
            if only not in name:
                continue
            try:
                yield name, count(path)
            except PsrtError as error:
                yield name, error.message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only files with this in their names")
    asked = parser.parse_args()
    read = dict(found(asked.folder, asked.only))
    print(json.dumps(read, indent=1, ensure_ascii=False))
    return int(not read or any(isinstance(rows, str) for rows in read.values()))


if __name__ == "__main__":
    raise SystemExit(main())
