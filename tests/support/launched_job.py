"""A job for tests of the launcher, with processes of `fake_psrt`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psrt.config.load import Loaded, load
from psrt.config.sections import LaunchConfig
from psrt.launch import launching

FAKE = Path(__file__).with_name("fake_psrt.py")
PROGRAM = (sys.executable, str(FAKE))


class Job:
    """A job file in a directory of its own, and what its processes of `fake_psrt` shall do."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "job.toml"
        self.said: list[str] = []
        (directory / "train.py").write_text("")
        self.write('[job]\nprogram = "train.py"\n')

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def behave(self, **behaviour: object) -> None:
        script = {name.replace("_", "."): value for name, value in behaviour.items()}
        defaults = {"trainers": 2, "launcher": os.getpid()}
        (self.directory / "behaviour.json").write_text(json.dumps({**defaults, **script}))

    def loaded(self, **flags: object) -> Loaded[LaunchConfig]:
        flags = {"job": str(self.path), "log_dir": str(self.logs), "grace_s": 30.0, **flags}
        return load(LaunchConfig, flags=flags, file=str(self.path))

    def launch(self, **flags: Any) -> int:
        return self.launch_saying(self.said.append, **flags)

    def launch_saying(
        self, say: Callable[[str], None], dry_run: bool = False, **flags: object
    ) -> int:
        return launching.run(self.loaded(**flags), say=say, program=PROGRAM, dry_run=dry_run)

    def report_of(self, child: str) -> dict[str, Any]:
        return json.loads((self.logs / f"{child}.report.json").read_text())

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def output(self) -> str:
        return "\n".join(self.said)
