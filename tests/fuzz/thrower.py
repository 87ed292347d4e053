"""`python -m tests.fuzz.thrower FACTS SEED`: frames through all doors of a victim.

Prints, every second and at the end, the number of frames by door, and what hung, as JSON. Ends when
its standard input does.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.doors import Doors, HangError
from tests.fuzz.seeds import frames

_REPORT_S = 1.0


def main(facts: Path, seed: int) -> None:
    draw, counts, hangs = random.Random(seed), Counter[str](), list[str]()
    doors = Doors(json.loads(facts.read_text()), frames(), draw)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    report_at = 0.0
    while not over.is_set():
        name = draw.choice(list(doors.by_name))
        try:
            counts[name] += doors.throw(name)
        except HangError as hang:
            hangs.append(str(hang))
        except OSError as error:  # no connection: the lab looks whether the victim is alive
            counts[f"not connected ({type(error).__name__})"] += 1
        if time.monotonic() >= report_at:
            report_at = time.monotonic() + _REPORT_S
            _report(counts, hangs)
    doors.close()
    _report(counts, hangs)


def _report(counts: Counter[str], hangs: list[str]) -> None:
    print(json.dumps({"frames": counts, "hangs": hangs}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
