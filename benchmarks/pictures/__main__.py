"""Draws the pictures of docs/benchmarks.md from measured figures.

    bin/bench rows_by_size latency --quick --json figures.json
    python -m benchmarks.pictures figures.json [--out docs/pictures]

`rows_by_size` gives rows/s by batch, width, table size and trainers (`rows_by_batch.svg`, …), and
`latency` its percentiles (`latency.svg`). Benchmarks that are not in the file are skipped. After
`--repeat`, points are medians and vertical lines reach from the least to the largest run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.pictures.drawing import draw

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("figures", type=Path, help="a file of bin/bench --json")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    args = parser.parse_args()
    for path in draw(json.loads(args.figures.read_text()), args.out):
        print(path)
