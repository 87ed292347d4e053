"""Notes: what trainers tell each other when they meet, pure.

A note belongs to a clock, a trainer and a time. Of each trainer the notes of its two latest times
are kept: who meets at time t + 1 has met at t, but its reply may have been lost, and then it asks
for those of t once more. Nobody is at t + 2 before.
"""

from __future__ import annotations

from collections import defaultdict

from psrt.core.errors import WireError

MAX_NOTE_BYTES = 1 << 16


class Notes:
    """Called under the machine's lock."""

    def __init__(self) -> None:
        self._written: dict[str, dict[int, dict[int, str]]] = defaultdict(dict)

    def write(self, clock: str, trainer: int, time: int, note: str) -> None:
        """An empty note says nothing; one of long ago is forgotten at once."""
        if not note:
            return
        if len(note.encode()) > MAX_NOTE_BYTES:
            raise WireError(
                f"trainer {trainer} brought a note of {len(note.encode()):,} bytes to clock "
                f"{clock!r}; up to {MAX_NOTE_BYTES:,} are kept. The call was refused."
            )
        own = self._written[clock].get(trainer, {}) | {time: note}
        self._written[clock][trainer] = {t: own[t] for t in own if t >= max(own) - 1}

    def written(self, clock: str, time: int, trainers: int) -> list[str]:
        """By trainer, "" for one that wrote nothing; empty if nobody did."""
        if clock not in self._written:
            return []
        by_trainer = self._written[clock]
        notes = [by_trainer.get(trainer, {}).get(time, "") for trainer in range(trainers)]
        return notes if any(notes) else []
