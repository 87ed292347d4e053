"""CPU time of a trainer for an example of its last epoch; if it is the first, with its start."""

from __future__ import annotations

import json
import os
import time
from typing import Any

FILE = "FLUID_CTR_CPU_FILE"
"""Variable that names the file for trainer 0 of a job."""

_began = [0.0]


def begin() -> None:
    """Count from now on."""
    _began[0] = time.process_time()


def used(examples: int) -> float:
    """Return microseconds of CPU time for each of `examples`."""
    return round((time.process_time() - _began[0]) / examples * 1e6, 1)


def after_epoch(epoch: Any) -> None:
    """Write the time for an example of this epoch; a callback of `psrt trainer`."""
    with open(os.environ[FILE], "w") as file:
        json.dump(used(epoch.train.examples), file)
    begin()
