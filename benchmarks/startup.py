"""Start-up: seconds until `psrt pserver` is ready, with an empty and with a warm kernel cache.

python -m benchmarks.startup [--repeat N]
"""

from __future__ import annotations

import argparse
import tempfile
import time

from benchmarks.measuring import harness


def run(args: argparse.Namespace) -> harness.Figures:
    with tempfile.TemporaryDirectory(prefix="psrt-bench-cache-") as cache:
        cold_s = ready_s("--cache-dir", cache)
        warm_s = ready_s("--cache-dir", cache)
    return {"workload": "start-up", "cold_s": round(cold_s, 2), "warm_s": round(warm_s, 2)}


def ready_s(*flags: str) -> float:
    started = time.perf_counter()
    with harness.pservers(1, *flags):
        return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    harness.main(parser, run)
