"""One training of `benchmarks.torch_accuracy`: alone, or as a rank under `psrt launch`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.torch_accuracy import clicks, trainings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--as-side", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    given = args.model, *clicks.set_aside(clicks.load(args.table)), args.seed
    alone = {"torch": trainings.by_torch, "local": trainings.here}
    if args.as_side in alone:
        found = alone[args.as_side](*given)
    else:
        found = trainings.ranked(*given, args.as_side)
    if os.environ.get("RANK", "0") == "0":
        args.out.write_text(json.dumps({"auc": found}))


if __name__ == "__main__":
    main()
