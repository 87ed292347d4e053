"""Commands of processes in the place of killed ones, and of one that waits for such a place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from psrt.launch.plan import PSERVER, TRAINER, Command

STANDBY = "standby"
RECOVER = "--recover"


def again_of(command: Command, endpoint: str, flags: Sequence[str] = (RECOVER,)) -> Command:
    """The command of a process in the place of its killed predecessor; a pserver's has `flags`."""
    if command.child.role == TRAINER:
        return replace(command, keeps_log=True)
    arguments = list(command.arguments)
    arguments[arguments.index("--port") + 1] = endpoint.rpartition(":")[2]
    return replace(command, arguments=(*arguments, *flags), keeps_log=True)


def standing_by(command: Command) -> Command:
    """The command of a process that waits to go on for a killed pserver, with the settings of one.

    It needs no result: it writes that of the pserver whose place it takes.
    """
    log = command.log.with_name(f"{STANDBY}.log")
    arguments = (*command.arguments, "--standby")
    return replace(command, arguments=arguments, log=log, result=log.with_suffix(".json"))


def take_over_line(command: Command) -> str:
    """The line that lets a process that stands by run the command of a pserver."""
    flags = command.arguments[command.arguments.index(PSERVER) + 1 :]
    return json.dumps({"flags": flags, "log": str(command.log.resolve())}) + "\n"


__all__ = ["RECOVER", "STANDBY", "again_of", "standing_by", "take_over_line"]
