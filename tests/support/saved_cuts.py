"""Complete cuts of given tables, without a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psrt.core.specs import Sync, to_plain
from psrt.pserver.checkpoints import cut_files, find_cut
from psrt.pserver.checkpoints.part_writer import write_part
from psrt.pserver.saved import CutState, cut_state
from psrt.pserver.tables import DenseTable
from psrt.storage import json_file
from psrt.storage.directory import contents
from psrt.storage.local_directory import LocalDirectory

JOB = {"id": "small", "trainers": 1, "mode": to_plain(Sync()), "plan_hash": "0" * 64}


def cut_of(
    directory: Path,
    dense: Sequence[Sequence[Any]],
    sparse: Sequence[Sequence[Any]],
    number: int = 1,
) -> CutState:
    """Write a cut of one part for each list of frozen tables."""
    place, parts = LocalDirectory(directory), []
    for index, (blocks, tables) in enumerate(zip(dense, sparse, strict=True)):
        write_part(place, number, index, blocks, tables, {})
        name = cut_files.part_name(number, index)
        digest = cut_files.digest_of(contents(place, name))
        parts.append({"endpoint": f"host-{index}:6170", "name": name, "xxh3": digest})
    members = {"number": number, "job": JOB, "round": 0, "step": 0, "positions": {}, "parts": parts}
    manifest = json_file.encode(cut_files.FORMAT_MANIFEST, cut_files.VERSION, members)
    place.commit(cut_files.manifest_name(number), manifest)
    return cut_state(find_cut(place, str(number)))


def cut_of_pservers(directory: Path, *pservers: Sequence[Any], number: int = 1) -> CutState:
    """Write a cut of the tables of some pservers, as they are now."""
    dense = [[t.freeze() for t in tables if isinstance(t, DenseTable)] for tables in pservers]
    sparse = [[t.freeze() for t in tables if not isinstance(t, DenseTable)] for tables in pservers]
    return cut_of(directory, dense, sparse, number)
