"""Saves of a model that are killed (SIGKILL) before each step that changes a directory.

    python -m tests.support.killed_saves ROOT …

copies `ROOT/start` to `ROOT/1`, `ROOT/2`, … and saves version 2 of a model into `ROOT/N/model`, in
a process that kills itself before its Nth step. It stops after the first save that was not killed.
A step is an opening, a making, a renaming or a removal below ROOT, as the interpreter's audit
events report them.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from psrt.core.specs import Adagrad, Constant, ConstantRate, SparseTableSpec
from psrt.trainer.models.export import check_target, save
from psrt.trainer.models.model_dir import Manifest
from psrt.trainer.models.saved_model import load

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}
TABLE = SparseTableSpec("emb", 2, Constant(0.0), Adagrad(), ConstantRate(0.1), seed=7)
ROWS = 4


def save_version(directory: Path, version: int) -> None:
    """Save a model in which every number is `version`."""
    ids = np.arange(ROWS, dtype=np.int64)
    rows = np.full((ROWS, TABLE.width), version, np.float32)
    dense = {name: np.full((2, 3), version, np.float32) for name in ("fc/b", "fc/w")}
    check_target(directory)
    save(directory, Manifest("job", "psrt", "text", [TABLE]), dense, {"emb": lambda: [(ids, rows)]})


def version_of(directory: Path) -> int:
    """Load a model and return the one number that it holds."""
    model = load(directory)
    rows = model.pull_rows({"emb": np.arange(ROWS, dtype=np.int64)})["emb"]
    (version,) = {float(x) for a in (rows, *model.dense.values()) for x in a.ravel()}
    return int(version)


def kill_before(step: int, root: Path) -> None:
    """Make this process kill itself before the step of that number."""
    count = itertools.count(1)

    def hook(event: str, arguments: tuple) -> None:
        if event in STEPS and is_change(event, arguments, root) and next(count) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def is_change(event: str, arguments: tuple, root: Path) -> bool:
    if event == "open":
        path, _, flags = arguments
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
        return writes and str(path).startswith(str(root))
    return True


def main(root: Path) -> None:
    for step in itertools.count(1):
        place = root / str(step)
        shutil.copytree(root / "start", place, symlinks=True)
        child = os.fork()
        if not child:
            kill_before(step, root)
            save_version(place / "model", 2)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            return


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        main(Path(argument))
