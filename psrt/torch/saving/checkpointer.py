"""`Checkpointer`: one cut of a torch job, with its tables and all that torch has beside them.

    cut-00000012/torch-0.pt     the objects of rank 0: a file of torch.save
    cut-00000012/torch.json     sizes and checksums of the files; makes the torch part complete

The names are those of the cut on pservers, so the directory may be theirs (`--checkpoint-dir`): a
cut is then deleted with its torch part. In another directory the newest `keep` are kept.
"""

from __future__ import annotations

import functools
import io
import json
import logging
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from psrt.core.errors import ConfigError, ProgramError, PsrtError, StorageError
from psrt.storage import json_file
from psrt.storage.checksums import checksum
from psrt.storage.directory import Directory, contents
from psrt.storage.failures import damaged
from psrt.storage.locate import directory_at
from psrt.torch.session import TableSession

log = logging.getLogger("psrt.torch")

_FORMAT, _VERSION, _TIMEOUT_S = "psrt torch part", 1, 600.0
_MANIFEST = re.compile(r"cut-(\d{8})/torch\.json")
_RNG = "torch random numbers"


class Checkpointer:
    """Saves and restores `objects`, which have `state_dict` and `load_state_dict`, with a cut.

    Each rank saves its own; a `load_state_dicts(states)` gets those of all ranks, if an object has
    it. States are tensors, numbers, texts and containers of them: what `torch.load` with
    `weights_only` takes; the first `save` tries that. `keep` is the number of torch parts that
    stay in a directory, 0 = all. Raises `ProgramError` for an object without these methods.
    """

    def __init__(self, session: TableSession, *, keep: int = 3, **objects: Any) -> None:
        for name, each in objects.items():
            if not (hasattr(each, "state_dict") and hasattr(each, "load_state_dict")):
                raise ProgramError(
                    f"{name} is of type {type(each).__name__}, which has no state_dict or no "
                    "load_state_dict: it cannot be saved.",
                    hint="Give numbers and texts of your own as an object with these methods.",
                )
        self._session, self._objects, self._keep = session, objects, keep
        self._is_tried = False

    def save(self, directory: str, timeout_s: float = _TIMEOUT_S) -> int:
        """Make a cut and write the objects of all ranks beside it; returns its number.

        Every rank calls it after the same step. If it raises on one of them, the former torch part
        is the newest. `directory` is a path or a URL that all ranks reach.
        """
        place, session = directory_at(directory), self._session
        cut = session.make_cut(timeout_s)
        records = session.backend.tell("torch files", _tried(self._write, place, cut), timeout_s)
        files = [json.loads(each) for each in records if each]
        first, me = _first_problem(files), session.backend.trainer_id
        if first is None and me == files[0]["rank"]:
            manifest = {"cut": cut, "run": session.run, "files": files}
            encoded = json_file.encode(_FORMAT, _VERSION, manifest)
            first = _problem_of(lambda: place.commit(_name(cut, "torch.json"), encoded))
            if (problem := _problem_of(lambda: _drop_old(place, self._keep))) is not None:
                log.warning("old torch parts stay: %s", problem)
        ends = session.backend.tell("torch part", json.dumps({"problem": first}), timeout_s)
        if (problem := _first_problem([json.loads(each) for each in ends if each])) is not None:
            raise StorageError(
                f"the torch part of cut {cut} was not written: {problem}",
                hint="The cut of the tables is complete; go on from an earlier one, or save again.",
            )
        return cut

    def load(self, directory: str) -> int:
        """Restore the objects from the cut that the pservers began with; returns its number.

        0 if they began anew: nothing is loaded. Call it once all modules are made, before the first
        step. Raises `ConfigError` if the directory has no torch part of that cut, or that lacks an
        object, `JobError` if tables are beyond it, because this rank has trained before in the
        running job.
        """
        session = self._session
        session.open()
        session.counts_batches()
        if not (cut := session.resumed_cut):
            return 0
        place = directory_at(directory)
        files = self._files_of(place, cut)
        self._restore(len(files), functools.cache(lambda rank: _read(place, cut, files[rank])))
        return cut

    def _restore(self, ranks: int, state_of: Callable[[int], dict[str, Any]]) -> None:
        """Restore the objects from those of `ranks` former ranks."""
        backend = self._session.backend
        mine = state_of(backend.trainer_id % ranks)
        if missing := sorted(self._objects.keys() - mine.keys()):
            raise ConfigError(
                f"the torch part of the cut has no {', '.join(missing)}; it has "
                f"{', '.join(sorted(mine.keys() - {_RNG}))}. Nothing was loaded.",
                hint="Give the Checkpointer what was saved, by the same names.",
            )
        for name, each in self._objects.items():
            if hasattr(each, "load_state_dicts"):
                each.load_state_dicts([state_of(rank)[name] for rank in range(ranks)])
            else:
                each.load_state_dict(mine[name])
        if ranks == backend.trainers:
            torch.set_rng_state(mine[_RNG])

    def _write(self, place: Directory, cut: int) -> dict[str, Any]:
        rank, buffer = self._session.backend.trainer_id, io.BytesIO()
        states = {name: each.state_dict() for name, each in self._objects.items()}
        if not self._is_tried:  # rather now than at the restart
            _check_loadable(states)
            self._is_tried = True
        torch.save({**states, _RNG: torch.get_rng_state()}, buffer)
        data, name = buffer.getvalue(), f"torch-{rank}.pt"
        with place.write(_name(cut, name)) as out:
            out.write(data)
        return {"rank": rank, "name": name, "bytes": len(data), "xxh3": f"{checksum(data):016x}"}

    def _files_of(self, place: Directory, cut: int) -> list[dict[str, Any]]:
        name = _name(cut, "torch.json")
        there = _numbers(place)
        if cut not in there:
            known = ", ".join(map(str, there)) or "none"
            raise ConfigError(
                f"the pservers began with cut {cut}, and {place.location} has no torch part of it; "
                f"it has those of {known}. Nothing was loaded.",
                hint="Start the pservers with --resume and one of these numbers.",
            )
        data = contents(place, name)
        manifest = json_file.decode(f"{place.location}/{name}", data, _FORMAT, _VERSION)
        if manifest["run"] != self._session.run:
            raise ConfigError(
                f"the torch part of cut {cut} in {place.location} is of run {manifest['run'][:8]}, "
                f"and the tables are of run {self._session.run[:8]}. Nothing was loaded.",
                hint="Give the directory of the job whose cut the pservers resume.",
            )
        return sorted(manifest["files"], key=lambda each: int(each["rank"]))


def _read(place: Directory, cut: int, file: Mapping[str, Any]) -> dict[str, Any]:
    name = _name(cut, file["name"])
    data = contents(place, name, limit_bytes=int(file["bytes"]))
    if len(data) != file["bytes"] or f"{checksum(data):016x}" != file["xxh3"]:
        raise damaged(f"{place.location}/{name}", "it does not have its checksum")
    loaded: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True)
    return loaded


def _check_loadable(states: Mapping[str, Any]) -> None:
    """Raise `ProgramError` for a state that `torch.load` with `weights_only` refuses."""
    for name, state in states.items():
        buffer = io.BytesIO()
        torch.save(state, buffer)
        buffer.seek(0)
        try:
            torch.load(buffer, weights_only=True)
        except pickle.UnpicklingError as error:
            raise ProgramError(
                f"the state of {name} has more than tensors, numbers, texts and containers of "
                "them, so it could not be loaded."
            ) from error


def _tried(write: Any, place: Directory, cut: int) -> str:
    """The record of a rank's file as a note, or its problem: the other ranks wait for either."""
    try:
        return json.dumps(write(place, cut))
    except Exception as error:  # of a user's object, too
        return json.dumps({"rank": -1, "problem": str(getattr(error, "message", error))})


def _problem_of(action: Any) -> str | None:
    try:
        action()
    except PsrtError as error:
        return error.message
    return None


def _first_problem(notes: list[dict[str, Any]]) -> str | None:
    return next((each["problem"] for each in notes if each.get("problem")), None)


def _drop_old(place: Directory, keep: int) -> None:
    """Delete all but the newest torch parts; a part without its manifest does not count."""
    old = _numbers(place)[: -keep or None] if keep else []
    for number in old:
        names = place.names(_name(number, "torch"))
        place.remove(*sorted(names, reverse=True))  # torch.json first


def _numbers(place: Directory) -> list[int]:
    found = (_MANIFEST.fullmatch(name) for name in place.names("cut-"))
    return sorted(int(each[1]) for each in found if each)


def _name(cut: int, file: str) -> str:
    return f"cut-{cut:08d}/{file}"
