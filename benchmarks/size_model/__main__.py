"""Memory, traffic and CPU time by `psrt plan --size`, compared with real processes.

    python -m benchmarks.size_model [--rows 1000000] [--steps 60]

    memory   resident memory of a pserver with rows of 16, made under SGD and under Adam
    traffic  bytes and CPU time of W1's steps on two pservers over TCP, without computing
    costs    the four CPU constants of `psrt.sizing.costs`

`traffic` runs every mode except geo, whose pushes are changes of a training;
`tests/unit/sizing/test_traffic.py` covers geo. Linux only. Run it with one BLAS thread.
"""

from __future__ import annotations

import argparse

from benchmarks.measuring import harness
from benchmarks.size_model.costs import costs
from benchmarks.size_model.memory import memory
from benchmarks.size_model.traffic import MODES, traffic


def run(args: argparse.Namespace) -> harness.Figures:
    return {
        "workload": "size model",
        "memory": {name: memory(name, args.rows) for name in ("sgd", "adam")},
        "traffic": {name: traffic(mode, args.steps) for name, mode in MODES.items()},
        "costs": costs(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=60)
    harness.main(parser, run)
