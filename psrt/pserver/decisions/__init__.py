"""The decisions of a pserver, as pure functions of (event, now).

An event is a call of a method of `PserverState`, such as `push(call, steps, now)`, and returns
instructions, such as `Apply(call, step)`. The effect runner of `serving` executes them and reports
what has been done as events, such as `applied(call)`. Decisions open no socket, start no thread and
read no clock, so tests and the simulator drive them event by event.

Who has little time reads `calls`, `rounds` and `pserver_state`. In reading order:

    lineages       progress of each trainer over all its processes
    calls          calls that wait, and the instructions that end their wait
    member         one trainer, as a pserver has recorded it
    membership     the state of each trainer, and the trainers that a round waits for
    dedupe         deduplication of pushes by trainer, incarnation and sequence
    pushes         asynchronous pushes, each applied once
    rounds         synchronous rounds: open, closing, applied
    buckets        the rounds of each bucket of dense blocks
    notes          short texts that trainers exchange when they meet
    clocks         named clocks of the trainers, and waits for a time
    cuts           cuts that all running trainers take part in, before the tables are frozen
    spec_rules     validation of table specs
    job_identity   the facts that all processes of a job must agree on
    departures     trainers whose process has left without completing, and what follows
    recovery       trainers that have to send pushes to a recovered pserver again
    resizing       a change of the number of trainers, at a cut
    joining        trainers that take their places
    pserver_state  all of the above, as events in and instructions out
    durable        pushes that are on disk, or at a backup
    saved_state    the state as plain data, for STATUS, in a cut, and taken over
"""

from psrt.pserver.decisions.calls import (
    Apply,
    Close,
    Fail,
    Forget,
    Freeze,
    Instruction,
    NoPart,
    SendReply,
    WaitingCall,
    Warn,
)
from psrt.pserver.decisions.clocks import Meeting
from psrt.pserver.decisions.cuts import given_up
from psrt.pserver.decisions.durable import (
    DurablePoint,
    DurableProgress,
    is_between_updates,
    point_of,
)
from psrt.pserver.decisions.job_identity import BackupAwaitedError, JobIdentity
from psrt.pserver.decisions.lineages import Lane, PushProgress, RecordedLineage, Steps
from psrt.pserver.decisions.member import Member, MemberState
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.resizing import of_unknown_end
from psrt.pserver.decisions.saved_state import (
    begin_anew,
    describe,
    dump,
    has_ended,
    restore,
    take_over,
    trainers_using,
)
from psrt.pserver.decisions.spec_rules import read_spec

__all__ = ["Apply", "Close", "Fail", "Forget", "Freeze", "Instruction", "NoPart"]
__all__ += ["DurablePoint", "DurableProgress", "SendReply", "WaitingCall", "Warn"]
__all__ += ["JobIdentity", "Meeting", "Member", "MemberState", "PserverState", "describe", "dump"]
__all__ += ["Lane", "PushProgress", "RecordedLineage", "Steps", "is_between_updates", "point_of"]
__all__ += ["BackupAwaitedError", "begin_anew", "given_up", "of_unknown_end"]
__all__ += ["has_ended", "read_spec", "restore", "take_over", "trainers_using"]
