"""Tables, parts and positions of a cut as plain data, for `psrt checkpoint list` and `show`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from psrt.pserver.checkpoints import SavedCut

Plain = dict[str, Any]


def plain(cut: SavedCut) -> Plain:
    """All that `psrt checkpoint show --json` prints."""
    names = ("number", "written", "job", "round", "step")
    return {
        **{name: cut.manifest.get(name) for name in names},
        "positions": {trainer: _read(text) for trainer, text in cut.manifest["positions"].items()},
        "bases": list(cut.bases),
        "bytes": own_bytes(cut),
        "bytes_with_bases": size_bytes(cut),
        "tables": tables(cut),
        "parts": parts(cut),
    }


def progress_of(cut: SavedCut) -> str:
    """The number of rounds in Sync, of mini-batches in the other modes."""
    rounds, steps = cut.manifest["round"], cut.manifest["step"]
    return (
        f"round {rounds:,}" if cut.manifest["job"]["mode"]["kind"] == "Sync" else f"step {steps:,}"
    )


def own_bytes(cut: SavedCut) -> int:
    """Bytes of the array files of a cut, without those that it builds on."""
    return sum(file["seal"]["bytes"] for part in cut.parts for file in part["files"])


def size_bytes(cut: SavedCut) -> int:
    """Bytes of all array files that a cut is restored from."""
    return sum(file["seal"]["bytes"] for file in cut.files)


def base_text(cut: SavedCut) -> str:
    """The cuts that a cut continues, `-` for a full one."""
    return ", ".join(map(str, cut.bases)) or "-"


def parts(cut: SavedCut) -> list[Plain]:
    """The part of each pserver, with its files."""
    return [
        {"endpoint": entry["endpoint"], "files": [_file(file) for file in part["files"]]}
        for entry, part in zip(cut.manifest["parts"], cut.parts, strict=True)
    ]


def tables(cut: SavedCut) -> list[Plain]:
    """Dense parameters, their blocks put together, then sparse tables, each over all parts."""
    found: dict[str, Plain] = {}
    for facts in _facts(cut):
        name, table = _table(facts)
        known = found.setdefault(name, table | {"size": 0, "blocks": 0, "version": 0})
        known["size"] += table["size"]
        known["blocks"] += 1
        known["version"] = max(known["version"], facts["version"])
    return sorted(found.values(), key=lambda table: (table["kind"], table["name"]))


def position_text(position: Any) -> str:
    """A position of a trainer for people; `position` is JSON as `plain` has it."""
    if not isinstance(position, dict):
        return str(position) or "took no part"
    if "deal" in position:
        return "had not joined since the data were dealt again"
    place = position.get("place") or {}
    at = [f"{_last(p['file'])}: {p['examples']:,} examples" for p in place.get("positions", ())]
    steps = f"{position.get('steps', 0):,} steps"  # a loop of a user's own has no epochs
    where = f"epoch {position['epoch']}, {steps}" if "epoch" in position else steps
    return "; ".join([where, *at])


def _facts(cut: SavedCut) -> Iterator[Plain]:
    for part in cut.parts:
        for file in part["files"]:
            yield from (table["facts"] for table in file.get("tables", ()))


def _table(facts: Plain) -> tuple[str, Plain]:
    """A table with its number of elements or rows on one pserver, by a name unique in the cut."""
    spec = facts["spec"]
    table = {"optimizer": spec["optimizer"]["kind"]}
    if spec["kind"] == "DenseTableSpec":
        dense = {"kind": "dense", "name": spec["parameter"], "shape": spec["shape"]}
        return f"dense {spec['parameter']}", dense | {"size": spec["size"]} | table
    sparse = {"kind": "sparse", "name": spec["name"], "width": spec["width"]}
    return f"sparse {spec['name']}", sparse | {"size": facts["rows"]} | table


def _file(file: Plain) -> Plain:
    return {"name": file["name"], **file["seal"]}


def _read(position: str) -> Any:
    """A position as JSON, of kept arrays the names only; text that is none stays text."""
    try:
        found = json.loads(position)
    except ValueError:
        return position
    kept = {"kept": sorted(found["kept"])} if isinstance(found, dict) and "kept" in found else {}
    return {**found, **kept} if kept else found


def _last(path: str) -> str:
    return path.rpartition("/")[2]
