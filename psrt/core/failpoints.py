"""Named points at which a process kills, stops or fails itself on request: rehearsed crashes.

`PSRT_FAILPOINT=cut.before_manifest=kill` kills a pserver just before it writes a manifest for the
first time. `@N` strikes the Nth time; commas separate several:

    push.after_apply=kill@20,cut.before_part=stop

A process passes the text of that variable to `arm` once. In all others `reach` is a call that
returns. docs/guarantees.md lists the points and what survives each.
"""

from __future__ import annotations

import os
import re
import signal
import threading

from psrt.core.errors import ConfigError, StorageError
from psrt.core.hints import did_you_mean

VARIABLE = "PSRT_FAILPOINT"

POINTS = {
    "cut.frozen": "tables are frozen for a cut, nothing is written",
    "cut.before_part": "the arrays of a part are durable, its record is not written",
    "cut.after_part": "a part is durable, and is not reported",
    "cut.before_manifest": "all parts are durable, the manifest is not written",
    "cut.after_manifest": "a cut is complete, older ones are not deleted yet",
    "delta.taken": "the tables are frozen for a local cut, nothing is written",
    "delta.before_record": "the arrays of a local cut are durable, its record is not written",
    "delta.after_record": "a local cut is durable, and no reply has named it",
    "file.before_rename": "a file is synced, and does not have its name",
    "restore.table": "a table exists, and is not filled from its cut",
    "push.before_apply": "a push or round was admitted, and is not applied",
    "push.after_apply": "a push or round is applied, and not answered",
    "reply.sent": "a reply has left over a stream",
}
"""Points by name, and the state of a pserver there."""

ACTIONS = {
    "kill": "SIGKILL",
    "stop": "SIGSTOP, until somebody sends SIGCONT",
    "fail": "an error, as if a disk had refused a file",
}

_MAY_FAIL = ("cut.", "delta.", "file.", "restore.")
_STRIKE = re.compile(r"([\w.]+)=(\w+)(?:@([1-9]\d*))?")

_armed: dict[str, dict[int, str]] = {}  # action by count, by point
_counts: dict[str, int] = {}
_lock = threading.Lock()


def reach(point: str) -> None:
    """Do what was armed for this point and this time; otherwise nothing."""
    if _armed:
        _strike(point)


def arm(text: str) -> None:
    """Replace what is armed by `text`, the value of PSRT_FAILPOINT; empty = nothing.

    Raises `ConfigError` for an unknown point or action.
    """
    armed: dict[str, dict[int, str]] = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        point, action, count = _parsed(each)
        armed.setdefault(point, {})[count] = action
    with _lock:
        _counts.clear()
        _armed.clear()
        _armed.update(armed)


def _parsed(text: str) -> tuple[str, str, int]:
    found = _STRIKE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"{VARIABLE} has {text!r}, which is not POINT=ACTION or POINT=ACTION@N.",
            hint="An example is cut.before_manifest=kill@2.",
        )
    point, action, count = found[1], found[2], int(found[3] or 1)
    if point not in POINTS:
        raise ConfigError(
            f"{VARIABLE} has the point {point!r}, which does not exist.",
            hint=did_you_mean(point, POINTS, f"The points are {', '.join(POINTS)}."),
        )
    if action not in ACTIONS or (action == "fail" and not point.startswith(_MAY_FAIL)):
        fitting = [each for each in ACTIONS if each != "fail" or point.startswith(_MAY_FAIL)]
        raise ConfigError(
            f"{VARIABLE} has the action {action!r}, which {point} does not have.",
            hint=f"It has {', '.join(fitting)}.",
        )
    return point, action, count


def _strike(point: str) -> None:
    with _lock:
        count = _counts[point] = _counts.get(point, 0) + 1
        action = _armed.get(point, {}).get(count)
    if action is None:
        return
    if action == "fail":
        raise StorageError(f"{VARIABLE} failed {point}, the {count}. time.")
    os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)


__all__ = ["ACTIONS", "POINTS", "VARIABLE", "arm", "reach"]
