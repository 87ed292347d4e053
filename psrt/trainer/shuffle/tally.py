"""Counts of a global shuffle, and the errors they show; pure.

`sent[i][j]` is the number of records that trainer i sent to j, `received[j][i]` the number that j
has from i, its own included. All trainers compare equal numbers, so all of them raise or none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from psrt.core.errors import JobError, WireError

_NAMED = 3


@dataclass(frozen=True)
class Word:
    """The note of one trainer to all others at one meeting of a shuffle, as JSON.

    `endpoint`: destination of its records. `kind`: a digest of their slots and of how they are
    shuffled; both at the first meeting. `before`: records it had. `counts`: by trainer, records
    sent at the second meeting, received at the third. `failed`: the reason for giving up.
    """

    endpoint: str = ""
    kind: str = ""
    before: int = 0
    counts: list[int] = field(default_factory=list)
    failed: str = ""

    def note(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value})

    @classmethod
    def of(cls, trainer: int, note: str) -> Self:
        try:
            return cls(**json.loads(note))
        except (ValueError, TypeError) as error:
            raise WireError(
                f"global shuffle: trainer {trainer} sent {note[:80]!r}, which no trainer of this "
                "release sends. The shuffle was given up.",
                hint="Install the same psrt release on all trainers.",
            ) from error


def words_of(notes: Sequence[str], trainers: int) -> list[Word]:
    """Parse notes by trainer; raise `JobError` that names trainers that are missing or gave up."""
    missing = [i for i in range(trainers) if i >= len(notes) or not notes[i]]
    if missing:
        raise JobError(
            f"global shuffle: trainer {', '.join(map(str, missing))} takes no part: it has "
            "completed, was lost or was started again. The shuffle "
            "was given up.",
            hint="All trainers call global_shuffle equally often, before any of them stops.",
        )
    words = [Word.of(trainer, note) for trainer, note in enumerate(notes)]
    for trainer, word in enumerate(words):
        if word.failed:
            raise JobError(
                f"global shuffle: trainer {trainer} has given up: {word.failed}",
                hint="Load the data again, on all trainers.",
            )
    return words


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise `JobError` unless all trainers shuffle records of one kind."""
    other = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        raise JobError(
            f"global shuffle: trainer {other} shuffles records of another kind than trainer 0; "
            "no record was handed over.",
            hint="All trainers need the same slots in the same order, and the same settings.",
        )


def total_of(notes: Sequence[str]) -> int:
    """Sum the numbers of all trainers that have not completed and are not lost."""
    try:
        return sum(int(note) for note in notes if note)
    except ValueError as error:
        raise WireError(
            f"trainers sent {notes} where their numbers of records belong; there is no sum.",
            hint="All trainers ask for sizes of datasets equally often.",
        ) from error


def check(
    before: Sequence[int], sent: Sequence[Sequence[int]], received: Sequence[Sequence[int]]
) -> None:
    """Raise `JobError` unless every record was handed over, and arrived, exactly once."""
    complaints = [
        f"trainer {i} had {had:,} records and handed over {sum(sent[i]):,}"
        for i, had in enumerate(before)
        if sum(sent[i]) != had
    ]
    complaints += [
        f"trainer {j} {_differs(sent[i][j], received[j][i])} trainer {i} sent it"
        for j in range(len(before))
        for i in range(len(before))
        if sent[i][j] != received[j][i]
    ]
    if complaints:
        more = f" and {len(complaints) - _NAMED} more" if len(complaints) > _NAMED else ""
        after = sum(map(sum, received))
        raise JobError(
            f"global shuffle: there were {sum(before):,} records before and are {after:,} after: "
            f"{'; '.join(complaints[:_NAMED])}{more}. The shuffled records were given up.",
            hint="This is a defect in psrt or a broken network; load the data again.",
        )


def _differs(sent: int, received: int) -> str:
    if received < sent:
        return f"lacks {sent - received:,} of the {sent:,} records"
    return f"has {received - sent:,} records more than the {sent:,}"
