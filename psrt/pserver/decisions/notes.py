"""Notes: short texts that trainers exchange when they meet on a clock; pure bookkeeping.

A note belongs to a clock, a trainer and a time. Of each trainer the notes of its two latest times
are kept: a trainer at time t + 1 has met the others at t, but its reply may have been lost, and
then it asks for the notes of t again. No trainer reaches t + 2 before.
"""

from __future__ import annotations

from collections import defaultdict

from psrt.core.errors import WireError

MAX_NOTE_BYTES = 1 << 16


class Notes:
    """Notes by clock, trainer and time; called under the lock of `PserverState`."""

    def __init__(self) -> None:
        self._written: dict[str, dict[int, dict[int, str]]] = defaultdict(dict)

    def write(self, clock: str, trainer: int, time: int, note: str) -> None:
        """Keep `note`, unless it is empty or older than the two latest times."""
        if not note:
            return
        if len(note.encode()) > MAX_NOTE_BYTES:
            raise WireError(
                f"trainer {trainer} brought a note of {len(note.encode()):,} bytes to clock "
                f"{clock!r}; up to {MAX_NOTE_BYTES:,} are kept. The call was refused.",
                hint="Notes are short texts; trainers exchange arrays through tables or files.",
            )
        notes = self._written[clock].get(trainer, {}) | {time: note}
        self._written[clock][trainer] = {t: notes[t] for t in notes if t >= max(notes) - 1}

    def written(self, clock: str, time: int, trainers: int) -> list[str]:
        """Notes by trainer, "" for one without; an empty list if there are none."""
        if clock not in self._written:
            return []
        by_trainer = self._written[clock]
        notes = [by_trainer.get(trainer, {}).get(time, "") for trainer in range(trainers)]
        return notes if any(notes) else []
