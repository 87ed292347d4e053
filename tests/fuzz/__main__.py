"""`bin/fuzz`: mutated frames inside processes and through all ports, and a crowd of connections."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from tests.fuzz.attack import attack, usable_connections
from tests.fuzz.ledger import Ledger
from tests.fuzz.stages import drawn, guided

LEAST_RATIO = 0.8
"""Of the honest trainer's speed, attacked and calm."""
MOST_GROWTH = 1.15
"""Of the memory of a pserver, from the end of the first turn to that of the last one."""


@click.command()
@click.option("--frames", default=100_000, show_default=True, help="Frames inside processes.")
@click.option("--frame-minutes", type=float, help="Draw no further frames after this time.")
@click.option("--guided", "of_guided", default=0.2, show_default=True, help="Share by coverage.")
@click.option("--minutes", default=1.0, show_default=True, help="Time of the attack on ports.")
@click.option("--turns", default=4, show_default=True, help="Turns of the attack.")
@click.option("--connections", default=1_000, show_default=True, help="Size of the crowd.")
@click.option("--nice", default=19, show_default=True, help="Priority of the strangers.")
@click.option("--seed", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes that draw frames.")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    help="Keep what frames inside processes showed in this file, and go on from there.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Write the JSON to this file, too.")
def main(
    frames: int,
    frame_minutes: float | None,
    of_guided: float,
    minutes: float,
    turns: int,
    connections: int,
    nice: int,
    seed: int,
    jobs: int,
    ledger: Path | None,
    report: Path | None,
) -> None:
    """Fuzz, and print what happened as JSON; exit 1 for a defect."""
    began, found, defects = time.monotonic(), dict[str, Any](), list[str]()
    kept = Ledger(ledger)
    if frames:
        inside = drawn(round(frames * (1 - of_guided)), seed, jobs, frame_minutes, kept)
        found["drawn"] = inside.report()
        defects += inside.defects
    if round(frames * of_guided):
        found["guided"] = guided(round(frames * of_guided), seed + 1, kept)
        defects += found["guided"].pop("defects", [])
    if minutes:
        with tempfile.TemporaryDirectory(prefix="psrt-fuzz-") as folder:
            crowd = usable_connections(connections)
            ports = attack(Path(folder), 60 * minutes, turns, crowd, seed, nice)
        found["ports"] = ports.report()
        defects += [*ports.defects, *_broken(found["ports"])]
    total = sum(each["frames"] for each in found.values())
    took_s = round(time.monotonic() - began)
    text = json.dumps({"frames": total, "took_s": took_s, "defects": defects, **found}, indent=1)
    print(text)
    if report is not None:
        report.write_text(text)
    sys.exit(bool(defects))


def _broken(ports: dict[str, Any]) -> list[str]:
    """Promises that an attack broke."""
    broken = [
        f"memory of {name} grew: {sizes} MiB"
        for name, sizes in ports["rss_mib"].items()
        if sizes[-1] > MOST_GROWTH * sizes[0]
    ]
    if ports["ratio"] < LEAST_RATIO:
        broken.append(f"the honest trainer had {ports['ratio']:.2f} of its speed")
    return broken


if __name__ == "__main__":
    main()
