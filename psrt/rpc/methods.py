"""The table of calls: the purpose of each method, and whether it may be repeated.

A call may be repeated after a lost reply if it is idempotent, or if it carries a push key, by which
the pserver applies it once. No other method is retried; a test checks it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Method(enum.IntEnum):
    """Numbers of `psrt.v1.Method`; a test keeps them equal."""

    HELLO = 1
    REGISTER = 2
    PULL = 3
    PUSH = 4
    EXCHANGE = 5
    COMPLETE = 6
    EXPORT = 7
    STATUS = 8
    MEET = 9
    RECORDS = 10
    SHRINK = 11
    WATCH = 12
    CUT = 13
    PART = 14
    CHECKPOINT = 15
    ATTEND = 16
    RESENT = 17
    KEEP_STATE = 18
    READ_STATE = 19
    GIVE = 20
    REPLICATE = 30
    DEPOSE = 31
    OPEN = 40


NAMES: dict[int, str] = {int(method): method.name for method in Method}
UNKNOWN = "UNKNOWN"
"""The name of every number that no method has."""

TRAINED = "trained"
ENDS_EARLY = "ends early"
"""The clock of MEET that reaches 1 after the last push of a trainer, at the first pserver."""


@dataclass(frozen=True)
class MethodSpec:
    idempotent: bool
    has_push_key: bool
    description: str
    scope: str = "train"  # the scope of a token that allows it

    @property
    def repeatable(self) -> bool:
        """True if a retry with the same header cannot be applied twice."""
        return self.idempotent or self.has_push_key


METHODS: dict[Method, MethodSpec] = {
    Method.HELLO: MethodSpec(True, False, "compare versions, job and plan; return data endpoints"),
    Method.REGISTER: MethodSpec(True, False, "declare the tables the pserver holds"),
    Method.PULL: MethodSpec(True, False, "read dense blocks and rows"),
    Method.PUSH: MethodSpec(False, True, "apply gradients on arrival"),
    Method.EXCHANGE: MethodSpec(False, True, "push, wait for the round to close, pull"),
    Method.COMPLETE: MethodSpec(True, False, "this trainer has finished; lower every barrier"),
    Method.EXPORT: MethodSpec(True, False, "read a page of the rows of a sparse table", "read"),
    Method.STATUS: MethodSpec(True, False, "counters, tables and members as JSON", "read"),
    Method.MEET: MethodSpec(True, False, "report how far this trainer is, wait for the others"),
    Method.RECORDS: MethodSpec(False, True, "send records of a global shuffle to another trainer"),
    Method.SHRINK: MethodSpec(True, False, "drop rows of sparse tables that are at their end"),
    Method.WATCH: MethodSpec(True, False, "wait until a cut is proposed"),
    Method.CUT: MethodSpec(True, False, "end what belongs to a cut, wait until tables are frozen"),
    Method.PART: MethodSpec(True, False, "report that a part of a cut is written", "admin"),
    Method.CHECKPOINT: MethodSpec(True, False, "propose a cut, wait until it is written"),
    Method.RESENT: MethodSpec(True, False, "report that all retained pushes were sent again"),
    Method.ATTEND: MethodSpec(True, False, "report that this process is there"),
    Method.KEEP_STATE: MethodSpec(True, False, "write a page of the caller's state into a cut"),
    Method.READ_STATE: MethodSpec(True, False, "read a page of a trainer's state from a cut"),
    Method.GIVE: MethodSpec(True, False, "set dense blocks that nobody has updated yet"),
    Method.REPLICATE: MethodSpec(True, False, "send changes of a part to its backup", "admin"),
    Method.DEPOSE: MethodSpec(True, False, "ask the backup of a part to serve it"),
    Method.OPEN: MethodSpec(True, False, "prove a token; the first call of a connection", "read"),
}
