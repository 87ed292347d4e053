"""decisions: files in reading order.

calls          Calls that wait, and what the deciding classes say to do about them
membership     Which trainers of the job this pserver has met, and whom a round must wait for
dedupe         Which pushes of a trainer's process were admitted already
pushes         Asynchronous pushes as pure decisions: each is applied once, whoever repeats it
               waits for that
rounds         Synchronous rounds as pure decisions: (event, now) → instructions
buckets        The rounds of all sections of one pserver: each has its own, as if it were a
               pserver of its own
notes          Notes: what trainers tell each other when they meet, pure
clocks         Named clocks of the trainers as pure decisions: (event, now) → instructions
mode_rules     Which communication modes a pserver accepts: what arrives in HELLO may come from
               a stranger
spec_rules     Which table specs a pserver accepts: what arrives in REGISTER may come from a
               stranger
pserver_state  Everything a pserver decides, as events in and instructions out
"""

from __future__ import annotations

from psrt.pserver.decisions.calls import (
    Apply,
    Close,
    Fail,
    Instruction,
    SendReply,
    WaitingCall,
    Warn,
)
from psrt.pserver.decisions.clocks import Meeting
from psrt.pserver.decisions.pserver_state import JobIdentity, PserverState
from psrt.pserver.decisions.spec_rules import read_spec

__all__ = [
    "Apply",
    "Close",
    "Fail",
    "Instruction",
    "JobIdentity",
    "Meeting",
    "PserverState",
    "SendReply",
    "WaitingCall",
    "Warn",
    "read_spec",
]
