"""The directory of cuts in the hands of the coordinator: its term, manifests, and old cuts."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from psrt.coordinator.instructions import Commit
from psrt.coordinator.term import Term
from psrt.core.errors import PsrtError
from psrt.core.failpoints import reach
from psrt.pserver.checkpoints import cut_files, term_file
from psrt.pserver.checkpoints.cutting import Settings
from psrt.pserver.checkpoints.stored_cuts import Bases, files_by_cut, remove_cut
from psrt.storage import json_file

log = logging.getLogger("psrt.pserver")


class CoordinatedCuts:
    """The cuts of the pservers `endpoints`, in a directory that one coordinator writes.

    `term` is taken already by a process that goes on for a killed one.
    """

    def __init__(self, settings: Settings, endpoints: Sequence[str], term: Term | None) -> None:
        self._directory, self._retention = settings.directory, settings.retention
        self._endpoints = tuple(endpoints)
        self._term = term or self._taken()
        self._bases = Bases(settings.directory)

    def keep(self, number: int) -> None:
        """Delete this cut in no case, 0 = none, and an earlier one like others."""
        self._retention = replace(self._retention, in_use=number)

    def check_term(self) -> None:
        """Take the term if that failed so far; raises `SupersededError` if it is over."""
        self._term = self._term or term_file.take(self._directory)
        term_file.check(self._directory, self._term)

    def commit(self, commit: Commit) -> None:
        """Write the manifest of a cut, which is complete from then on."""
        name = cut_files.manifest_name(commit.number)
        self._directory.commit(name, _manifest(commit, self._endpoints))

    def remove(self, number: int) -> None:
        """Delete a cut unless another process coordinates the directory, or the storage fails."""
        try:
            if self._term is not None:
                term_file.check(self._directory, self._term)
            remove_cut(self._directory, number)
        except PsrtError as error:
            log.warning("cut %d was not deleted: %s", number, error)

    def remove_old(self) -> None:
        """Delete cuts that retention drops, and parts of older ones that were given up.

        A storage that fails now costs no cut.
        """
        try:
            reach("cut.after_manifest")
            found = files_by_cut(self._directory)
        except PsrtError as error:
            log.warning("older cuts were not deleted: %s", error)
            return
        complete = [n for n, names in found.items() if cut_files.manifest_name(n) in names]
        torn = {n for n in found if n < complete[-1]} - set(complete)
        dropped = self._retention.dropped(complete, self._bases.of)
        for number in (*dropped, *sorted(torn)):
            self.remove(number)

    def close(self, newest: int) -> None:
        """Record that every cut up to `newest` is decided, for reports that come too late."""
        if self._term is None:
            return
        try:
            term_file.close(self._directory, self._term, newest)
        except PsrtError as error:
            log.warning("the end of the coordinator was not recorded: %s", error)

    def _taken(self) -> Term | None:
        """The term of this process; None, to be taken later, if the storage fails now."""
        try:
            return term_file.take(self._directory)
        except PsrtError as error:
            log.warning("the directory of cuts cannot be written now: %s", error)
            return None


def _manifest(commit: Commit, endpoints: Sequence[str]) -> bytes:
    """The facts of the first pserver's part, and the records of all parts."""
    records = [json.loads(commit.parts[endpoint]) for endpoint in endpoints]
    first = records[0]
    parts = [
        {
            "endpoint": endpoint,
            "name": cut_files.part_name(commit.number, index),
            "xxh3": cut_files.digest_of(commit.parts[endpoint].encode("ascii")),
        }
        for index, endpoint in enumerate(endpoints)
    ]
    members = {
        "number": commit.number,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **{name: first[name] for name in ("job", "round", "step")},
        "positions": {str(trainer): at for trainer, _, at in first["participants"]},
        "bases": sorted({record["base"] for record in records} - {0}),
        "parts": parts,
    }
    return json_file.encode(cut_files.FORMAT_MANIFEST, cut_files.VERSION, members)
