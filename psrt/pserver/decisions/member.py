"""One trainer of a job, as a pserver has recorded it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class MemberState(enum.Enum):
    UNSEEN = "unseen"  # has sent no HELLO
    RUNNING = "running"  # sent HELLO; rounds wait for it
    COMPLETED = "completed"  # sent COMPLETE; rounds no longer wait for it
    LOST = "lost"  # left without COMPLETE; rounds no longer wait for it


class Presence(enum.Enum):
    """Presence of the process of a running trainer, kept by `departures`."""

    UNKNOWN = "unknown"  # none of its connections outlives a call
    PRESENT = "present"
    GONE = "gone"


@dataclass
class Member:
    """One trainer; `incarnation` is 0 if and only if the state is UNSEEN.

    `called_s` is the time of its latest call, `gone_s` the time at which its process was found to
    have left, `completed_s` that of its COMPLETE. `has_called` is True once its process has sent
    more than HELLO, `has_begun` once it has sent more than HELLO and ATTEND, `was_interrupted` once
    it has reported that it leaves early. `is_unconfirmed` is True while it may ask for the reply to
    COMPLETE again. `position` is the place in its data that its COMPLETE named. `former` are the
    incarnations that were replaced, `introduced` those that may take the place.
    """

    trainer: int
    state: MemberState = MemberState.UNSEEN
    incarnation: int = 0
    called_s: float = 0.0
    gone_s: float | None = None
    completed_s: float = 0.0
    position: str = ""
    presence: Presence = Presence.UNKNOWN
    has_called: bool = False
    has_begun: bool = False
    was_interrupted: bool = False
    is_unconfirmed: bool = False
    former: set[int] = field(default_factory=set)
    introduced: list[int] = field(default_factory=list)


def description(member: Member, now: float) -> str:
    if member.state is MemberState.UNSEEN:
        return f"trainer {member.trainer} (never seen)"
    gone = "" if member.gone_s is None else "gone, "
    gone = "interrupted, " if member.was_interrupted else gone
    return f"trainer {member.trainer} ({gone}last call {now - member.called_s:.1f} s ago)"
