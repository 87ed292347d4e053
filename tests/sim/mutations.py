"""Planted bugs: each replaces one function of psrt by one with a mistake that a person could make.

Histories must find all of them; a bug that is not found shows what the simulator does not check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psrt.communicator.async_.gradient_queue import Group
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.sender import Sender
from psrt.communicator.async_.ssp import SspCommunicator
from psrt.communicator.base import Position, no_position
from psrt.communicator.base_communicator import BaseCommunicator
from psrt.communicator.geo import GeoTable
from psrt.communicator.geo.cut_turns import CutTurns
from psrt.communicator.requests import PserverGroup
from psrt.communicator.requests.retained import RetainedPush, RetainedPushes
from psrt.coordinator import retention
from psrt.pserver.checkpoints import cutting, merging
from psrt.pserver.decisions.buckets import BucketRounds
from psrt.pserver.decisions.clocks import Clocks
from psrt.pserver.decisions.dedupe import AdmittedPushes, SeenSequences
from psrt.pserver.decisions.departures import Departures
from psrt.pserver.decisions.membership import Membership, MemberState
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.rounds import Rounds
from psrt.pserver.frozen.change_marks import ChangeMarks
from psrt.pserver.frozen.frozen_records import FrozenRecords
from psrt.pserver.serving import effect_runner, updates
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.rpc.client import Client
from psrt.rpc.retry import RetryPolicy


@dataclass(frozen=True)
class Mutation:
    """`make(original)` returns the function that takes the place of `owner.name`.

    `mode` is one in which it matters; some matter in durable jobs only.
    """

    owner: Any
    name: str
    mode: str
    make: Callable[[Callable[..., Any]], Callable[..., Any]]
    is_durable: bool = False

    @contextmanager
    def planted(self) -> Iterator[None]:
        original = self.owner.__dict__[self.name]
        function = original.fget if isinstance(original, property) else original
        made: Any = self.make(function)
        setattr(self.owner, self.name, property(made) if isinstance(original, property) else made)
        try:
            yield
        finally:
            setattr(self.owner, self.name, original)


def always(value: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda original: lambda *given, **named: value


def _next_key_in_every_attempt(original: Callable[..., Any]) -> Callable[..., Any]:
    def attempt(self: Client, message: Any, left_s: float) -> Any:
        key = message.header.push_key
        if key.sequence:
            key.sequence = self.next_push_key().sequence
        return original(self, message, left_s)

    return attempt


def _first_trainer_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: original(self)[1:]


def _gaps_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: SeenSequences, sequence: int) -> bool:
        self.beyond.clear()
        return original(self, sequence)

    return add


def _gap_taken_as_seen(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: SeenSequences, sequence: int) -> bool:
        is_new = original(self, sequence)
        self.complete_to = max(self.complete_to, sequence)
        return is_new

    return add


def _mean_over_one_more(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda pushes, trainers, *rest: original(pushes, trainers + 1, *rest)


def _in_reverse(original: Callable[..., Any]) -> Callable[..., Any]:
    def execute(self: Any, instructions: Any) -> None:
        original(self, list(instructions)[1:] if len(instructions) > 1 else instructions)

    return execute


def _replaced_without_withdrawal(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, trainer: []


def _one_gradient_less(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: Group, gradient: Any) -> None:
        self.count += 1

    return add


def _only_the_first_of_a_group(original: Callable[..., Any]) -> Callable[..., Any]:
    def sent(self: MergeQueue, merged: Any) -> None:
        for name, group in merged.groups.items():
            self._queues[name]._groups.appendleft(group)
            self._queues[name].waiting += group.count
        original(self, merged)

    return sent


def _any_list(original: Callable[..., Any]) -> Callable[..., Any]:
    def get(self: IdListCache, trainer: int, table: str, number: int) -> Any:
        return next((kept.again() for kept in self._lists.values()), None)

    return get


def _waits_for_all(original: Callable[..., Any]) -> Callable[..., Any]:
    def awaited(self: Membership) -> list[int]:
        lost = [m.trainer for m in self.members if m.state is MemberState.COMPLETED]
        return sorted([*original(self), *lost])

    return awaited


def _applies_twice(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply_now(*given: Any) -> None:
        original(*given)
        original(*given)

    return apply_now


def _skips_the_last_table(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda pushes, *rest: original(pushes[:-1], *rest)


def _answers_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: PserverGroup, method: Any, requests: Any, *rest: Any, **named: Any) -> Any:
        return original(self, method, requests[:1], *rest, **named)

    return call


def _round_stays_open(original: Callable[..., Any]) -> Callable[..., Any]:
    def closed(self: Rounds) -> Any:
        answers = original(self)
        self.taken.clear()
        return answers

    return closed


def _a_step_ahead(original: Callable[..., Any]) -> Callable[..., Any]:
    def begin(self: SspCommunicator, wanted: Any) -> None:
        self._slowest = 1 << 40
        original(self, wanted)

    return begin


def _does_not_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    def pause(self: MergeQueue, timeout_s: float) -> bool:
        self._paused = True
        return True

    return pause


def _position_of_the_step_before(original: Callable[..., Any]) -> Callable[..., Any]:
    former: dict[int, Position] = {}

    def continues_at(self: BaseCommunicator, position: Position) -> None:
        self._next_position = former.get(id(self), no_position)
        former[id(self)] = position

    return continues_at


def _confirmed_when_written(original: Callable[..., Any]) -> Callable[..., Any]:
    def write_part(directory: Any, number: int, index: int, dense: Any, sparse: Any, *rest: Any):
        record = original(directory, number, index, dense, sparse, *rest)
        for table in (*dense, *sparse):
            table.confirm()
        return record

    return write_part


def _changes_of_a_given_up_cut_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    def freeze(self: ChangeMarks) -> Any:
        self._pending, self._pending_dropped = None, []
        return original(self)

    return freeze


def _keeps_nothing_for_the_cut(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given, **named: None


def _dropped_too_early(original: Callable[..., Any]) -> Callable[..., Any]:
    def takes_part(self: RetainedPushes, number: int) -> None:
        original(self, number)
        self.completed(number)

    return takes_part


def _repeated_with_new_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    def of(self: RetainedPushes, endpoint: int) -> list[RetainedPush]:
        pushes: list[RetainedPush] = original(self, endpoint)
        for push in pushes:
            push.header.push_key.CopyFrom(self._clients[endpoint].next_push_key())
        return pushes

    return of


MUTATIONS: dict[str, Mutation] = {
    "every push is new": Mutation(AdmittedPushes, "admit", "async", always(True)),
    "no push is new": Mutation(AdmittedPushes, "admit", "async", always(False)),
    "pushes behind a gap are forgotten": Mutation(
        SeenSequences, "add", "async-pool", _gaps_forgotten
    ),
    "pushes before a gap count as seen": Mutation(
        SeenSequences, "add", "async-pool", _gap_taken_as_seen
    ),
    "a repeat gets a new key": Mutation(Client, "_attempt", "async", _next_key_in_every_attempt),
    "a repeat gets a new key in Sync": Mutation(
        Client, "_attempt", "sync", _next_key_in_every_attempt
    ),
    "an applied round is forgotten": Mutation(Rounds, "_was_applied", "sync", always(False)),
    "the last keys of a round are forgotten": Mutation(Rounds, "closed", "sync", _round_stays_open),
    "a round forgets the first trainer": Mutation(
        Membership, "awaited", "sync", _first_trainer_forgotten
    ),
    "a mean counts one trainer more": Mutation(updates, "_apply_mean", "sync", _mean_over_one_more),
    "a new process leaves the push of the former": Mutation(
        Rounds, "replaced", "sync", _replaced_without_withdrawal
    ),
    "completing changes nothing": Mutation(Membership, "complete", "async", always(None)),
    "rounds wait for trainers that completed": Mutation(
        Membership, "awaited", "sync", _waits_for_all
    ),
    "one of several instructions is dropped": Mutation(
        effect_runner.EffectRunner, "_execute", "sync", _in_reverse
    ),
    "deadlines of rounds never pass": Mutation(PserverState, "expire", "sync", always([])),
    "nobody checks who left": Mutation(Departures, "is_due", "async", always(False)),
    "a push is applied twice": Mutation(effect_runner, "apply_now", "async", _applies_twice),
    "the last table of a push is left out": Mutation(
        effect_runner, "apply_now", "half-async", _skips_the_last_table
    ),
    "a merged gradient is not added": Mutation(Group, "add", "async-merging", _one_gradient_less),
    "a sent group stays queued": Mutation(
        MergeQueue, "sent", "async-merging", _only_the_first_of_a_group
    ),
    "a flush does not wait": Mutation(Sender, "drain", "async", always(None)),
    "the queue counts as empty while a push is under way": Mutation(
        MergeQueue, "_idle", "async-merging", lambda original: lambda self: not self._steps
    ),
    "a push names any list of ids": Mutation(IdListCache, "get", "async", _any_list),
    "one pserver is left out of every step": Mutation(
        PserverGroup, "call", "half-async", _answers_at_once
    ),
    "no call is tried again": Mutation(RetryPolicy, "next_delay", "async", always(None)),
    "a trainer runs ahead of the slowest": Mutation(SspCommunicator, "begin", "ssp", _a_step_ahead),
    "a cut does not wait for queued gradients": Mutation(
        MergeQueue, "pause", "async-merging", _does_not_wait
    ),
    "a cut has the position of the step before": Mutation(
        BaseCommunicator, "continues_at", "half-async", _position_of_the_step_before
    ),
    "a trainer pushes changes while a cut freezes tables": Mutation(
        CutTurns, "await_frozen", "geo", always(None)
    ),
    "a cut lacks the rows that trainers hold": Mutation(GeoTable, "kept", "geo", always(())),
    "rows change before they are copied": Mutation(
        FrozenRecords, "save", "async", _keeps_nothing_for_the_cut
    ),
    "a recovered pserver begins with round 0": Mutation(
        BucketRounds, "restore", "sync", always(None), is_durable=True
    ),
    "a recovered pserver is sent nothing again": Mutation(
        RetainedPushes, "of", "half-async", always([]), is_durable=True
    ),
    "one push less is sent again": Mutation(
        RetainedPushes, "of", "sync", lambda original: lambda *a: original(*a)[:-1], is_durable=True
    ),
    "pushes are dropped when a cut is proposed": Mutation(
        RetainedPushes, "takes_part", "async", _dropped_too_early, is_durable=True
    ),
    "a repeated push has a new key": Mutation(
        RetainedPushes, "of", "async", _repeated_with_new_keys, is_durable=True
    ),
    "a delta begins at a cut that may be given up": Mutation(
        cutting, "write_part", "async", _confirmed_when_written
    ),
    "changes before a cut that was given up are forgotten": Mutation(
        ChangeMarks, "freeze", "half-async", _changes_of_a_given_up_cut_forgotten
    ),
    "retention drops what a kept cut builds on": Mutation(
        retention, "closure", "async", lambda original: lambda numbers, bases: set(numbers)
    ),
    "deleted rows come back": Mutation(ChangeMarks, "drop", "async", always(None)),
    "a merged cut has deleted rows": Mutation(
        merging, "_contains", "async", lambda original: lambda newer, keys: keys != keys
    ),
    "clocks never let a trainer go": Mutation(Clocks, "answer_met", "ssp", always([])),
}
"""Mutations by the mistake."""
