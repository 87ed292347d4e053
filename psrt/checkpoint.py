"""Cuts from Python: list those of a directory, make one from a training loop.

    for cut in psrt.checkpoint.cuts("checkpoints"): print(cut.number, cut.written)
    psrt.checkpoint.latest("checkpoints")             None without a complete cut
    executor.checkpoint()                             a cut now, of a `psrt.ConnectedExecutor`
    executor.start(); executor.cuts.resumed           where a restarted loop goes on

A job begins with a cut if its pservers do: `psrt pserver --resume`, or
`psrt.serve(part, checkpoint_dir=DIR, resume="latest")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psrt.pserver.checkpoints import SavedCut, complete_cuts, find_cut
from psrt.storage.locate import directory_at

__all__ = ["CutSummary", "cuts", "latest"]


@dataclass(frozen=True)
class CutSummary:
    """A complete cut: `round` in Sync, `step` of all trainers in the other modes.

    `written` is UTC in ISO 8601. `positions` are where the trainers go on, by number, as JSON.
    """

    number: int
    written: str
    job: str
    mode: str
    round: int
    step: int
    trainers: int
    pservers: int
    positions: Mapping[int, str]


def cuts(location: str) -> list[CutSummary]:
    """Return the complete cuts of a directory or URL, the oldest first.

    Raises `StorageError` for a record that is damaged.
    """
    directory = directory_at(location)
    return [_summary(find_cut(directory, str(number))) for number in complete_cuts(directory)]


def latest(location: str) -> CutSummary | None:
    """Return the newest complete cut of a directory or URL, None without one."""
    directory = directory_at(location)
    return _summary(find_cut(directory, "latest")) if complete_cuts(directory) else None


def _summary(cut: SavedCut) -> CutSummary:
    manifest, job = cut.manifest, cut.manifest["job"]
    return CutSummary(
        cut.number,
        str(manifest["written"]),
        str(job["id"]),
        str(job["mode"]["kind"]),
        int(manifest["round"]),
        int(manifest["step"]),
        int(job["trainers"]),
        len(cut.parts),
        {int(trainer): str(at) for trainer, at in manifest["positions"].items()},
    )
