"""W10: tables of `psrt.torch` in one process beside torch's own, in one loop.

    python -m benchmarks.w10_torch

A network of the shape of W1 (26 features, rows of 16, two dense layers). Each repetition times all
variants one after the other; figures are medians, and ratios are those of steps per second.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of torch's operations")
    given = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: pip install -e .[torch]", file=sys.stderr)
        sys.exit(2)
    from benchmarks.w10_torch.loops import run

    print(json.dumps(run(given.steps, given.batch, given.repeats, given.threads)))
