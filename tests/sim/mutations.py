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
from psrt.communicator.base_communicator import BaseCommunicator
from psrt.communicator.geo import GeoTable
from psrt.communicator.geo.cut_turns import CutTurns
from psrt.communicator.requests import PserverGroup
from psrt.communicator.requests.lineage import Lineage
from psrt.communicator.requests.retained import RetainedPushes
from psrt.coordinator import retention
from psrt.pserver.checkpoints import LocalCuts, cutting, merging, served_job
from psrt.pserver.decisions.buckets import BucketRounds
from psrt.pserver.decisions.clocks import Clocks
from psrt.pserver.decisions.dedupe import AdmittedPushes, SeenSequences
from psrt.pserver.decisions.departures import Departures
from psrt.pserver.decisions.job_identity import PserverProcesses
from psrt.pserver.decisions.lineages import RecordedLineage
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.resizing import Resizing
from psrt.pserver.decisions.rounds import Rounds
from psrt.pserver.frozen.change_marks import ChangeMarks
from psrt.pserver.frozen.frozen_records import FrozenRecords
from psrt.pserver.replicas import PartHost, kept_copy
from psrt.pserver.replicas.copy_state import CopyState
from psrt.pserver.serving import effect_runner, updates
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.resuming import Resuming
from psrt.pserver.serving.durable import durability, part_source
from psrt.pserver.serving.durable.delta_writer import DeltaWriter
from psrt.pserver.serving.durable.part_source import PartSource
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.join_calls import JoinCalls
from psrt.rpc.client import Client
from psrt.rpc.retry import RetryPolicy
from tests.sim import mistakes
from tests.sim.mistakes import always


@dataclass(frozen=True)
class Mutation:
    """`make(original)` returns the function that takes the place of `owner.name`.

    `mode` is one in which it matters, and `kind` the kind of histories. They begin at seed `first`:
    few find some bugs.
    """

    owner: Any
    name: str
    mode: str
    make: Callable[[Callable[..., Any]], Callable[..., Any]]
    kind: str = "plain"
    first: int = 0

    @property
    def original(self) -> Callable[..., Any]:
        found: Any = self.owner.__dict__[self.name]
        return found.fget if isinstance(found, property) else found

    @contextmanager
    def planted(self) -> Iterator[None]:
        found = self.owner.__dict__[self.name]
        made: Any = self.make(self.original)
        setattr(self.owner, self.name, property(made) if isinstance(found, property) else made)
        try:
            yield
        finally:
            setattr(self.owner, self.name, found)


MUTATIONS: dict[str, Mutation] = {
    "every push is new": Mutation(AdmittedPushes, "admit", "async", always(True)),
    "no push is new": Mutation(AdmittedPushes, "admit", "async", always(False)),
    "pushes behind a gap are forgotten": Mutation(
        SeenSequences, "add", "async-pool", mistakes.gaps_forgotten, first=45
    ),
    "pushes before a gap count as seen": Mutation(
        SeenSequences, "add", "async-pool", mistakes.gap_taken_as_seen
    ),
    "a repeat gets a new key": Mutation(
        Client, "_attempt", "async", mistakes.next_key_in_every_attempt
    ),
    "a repeat gets a new key in Sync": Mutation(
        Client, "_attempt", "sync", mistakes.next_key_in_every_attempt, first=35
    ),
    "an applied round is forgotten": Mutation(Rounds, "_was_applied", "sync", always(False)),
    "the last keys of a round are forgotten": Mutation(
        Rounds, "closed", "sync", mistakes.round_stays_open
    ),
    "a round forgets the first trainer": Mutation(
        Membership, "awaited", "sync", mistakes.first_trainer_forgotten
    ),
    "a mean counts one trainer more": Mutation(
        updates, "_apply_mean", "sync", mistakes.mean_over_one_more
    ),
    "a new process leaves the push of the former": Mutation(
        Rounds, "replaced", "sync", mistakes.replaced_without_withdrawal, first=405
    ),
    "completing changes nothing": Mutation(Membership, "complete", "async", always(None)),
    "rounds wait for trainers that completed": Mutation(
        Membership, "awaited", "sync", mistakes.waits_for_all
    ),
    "one of several instructions is dropped": Mutation(
        effect_runner.EffectRunner, "_execute", "sync", mistakes.in_reverse
    ),
    "deadlines of rounds never pass": Mutation(PserverState, "expire", "sync", always([])),
    "nobody checks who left": Mutation(Departures, "is_due", "async", always(False)),
    "a push is applied twice": Mutation(
        effect_runner, "apply_now", "async", mistakes.applies_twice
    ),
    "the last table of a push is left out": Mutation(
        effect_runner, "apply_now", "half-async", mistakes.skips_the_last_table
    ),
    "a merged gradient is not added": Mutation(
        Group, "add", "async-merging", mistakes.one_gradient_less
    ),
    "a sent group stays queued": Mutation(
        MergeQueue, "sent", "async-merging", mistakes.only_the_first_of_a_group
    ),
    "a flush does not wait": Mutation(Sender, "drain", "async", always(None)),
    "the queue counts as empty while a push is under way": Mutation(
        MergeQueue, "_idle", "async-merging", lambda original: lambda self: not self._steps
    ),
    "a push names any list of ids": Mutation(IdListCache, "get", "async", mistakes.any_list),
    "one pserver is left out of every step": Mutation(
        PserverGroup, "call", "half-async", mistakes.answers_at_once
    ),
    "no call is tried again": Mutation(RetryPolicy, "next_delay", "async", always(None), first=55),
    "a trainer runs ahead of the slowest": Mutation(
        SspCommunicator, "begin", "ssp", mistakes.a_step_ahead
    ),
    "a cut does not wait for queued gradients": Mutation(
        MergeQueue, "pause", "async-merging", mistakes.does_not_wait
    ),
    "a cut has the position of the step before": Mutation(
        BaseCommunicator, "continues_at", "half-async", mistakes.position_of_the_step_before
    ),
    "a trainer pushes changes while a cut freezes tables": Mutation(
        CutTurns, "await_frozen", "geo", always(None)
    ),
    "a cut lacks the rows that trainers hold": Mutation(GeoTable, "kept", "geo", always(())),
    "rows change before they are copied": Mutation(
        FrozenRecords, "save", "async", mistakes.keeps_nothing_for_the_cut, first=42
    ),
    "a recovered pserver begins with round 0": Mutation(
        BucketRounds, "restore", "sync", always(None), kind="durable"
    ),
    "a recovered pserver is sent nothing again": Mutation(
        RetainedPushes, "of", "half-async", always(([], 0)), kind="durable"
    ),
    "one push less is sent again": Mutation(
        RetainedPushes, "of", "sync", mistakes.without_the_last, kind="durable", first=7
    ),
    "pushes are dropped when a cut is proposed": Mutation(
        RetainedPushes, "takes_part", "async", mistakes.dropped_too_early, kind="durable"
    ),
    "a repeated push has a new key": Mutation(
        RetainedPushes, "of", "async", mistakes.repeated_with_new_keys, kind="durable"
    ),
    "a delta begins at a cut that may be given up": Mutation(
        cutting, "write_part", "async", mistakes.confirmed_when_written, first=100
    ),
    "changes before a cut that was given up are forgotten": Mutation(
        ChangeMarks, "freeze", "half-async", mistakes.changes_of_a_given_up_cut_forgotten
    ),
    "retention drops what a kept cut builds on": Mutation(
        retention, "closure", "async", lambda original: lambda numbers, bases: set(numbers)
    ),
    "deleted rows come back": Mutation(ChangeMarks, "drop", "async", always(None), first=50),
    "a merged cut has deleted rows": Mutation(
        merging, "_contains", "async", lambda original: lambda newer, keys: keys != keys
    ),
    "pushes count as durable before they are written": Mutation(
        DeltaWriter, "_write", "async", mistakes.durable_before_it_is_written, kind="deltas"
    ),
    "a local cut lacks the push keys": Mutation(
        durability, "local_facts", "async", mistakes.without_push_keys, kind="deltas"
    ),
    "changes that one consumer takes are lost for the others": Mutation(
        ChangeMarks, "freeze", "async", mistakes.changes_for_one_consumer_only, kind="deltas"
    ),
    "a local cut continues one that was not written": Mutation(
        LocalCuts, "give_up", "async", mistakes.confirmed_though_it_failed, kind="deltas"
    ),
    "a job's beginning has the decisions of a trainer that joins later": Mutation(
        *(durability.Durability, "joins", "async", mistakes.later_decisions),
        kind="early",
        first=350,
    ),
    "a recovery from the beginning is sent nothing again": Mutation(
        RetainedPushes, "of", "half-async", always(([], 0)), kind="early"
    ),
    "a tick lacks the push keys": Mutation(
        part_source, "local_facts", "async", mistakes.without_push_keys, kind="backups"
    ),
    "pushes count as durable before the backup has them": Mutation(
        PartSource, "take", "async", mistakes.durable_before_it_is_sent, kind="backups", first=448
    ),
    "the decisions of a tick come without its rows": Mutation(
        kept_copy, "_put", "async", mistakes.only_whole_ticks, kind="backups"
    ),
    "a backup is sent nothing again": Mutation(
        RetainedPushes, "of", "sync", always(([], 0)), kind="backups"
    ),
    "a backup never serves": Mutation(
        CopyState, "deposed", "half-async", always(False), kind="backups", first=2
    ),
    "clocks never let a trainer go": Mutation(Clocks, "answer_met", "ssp", always([])),
    "a successor begins a step late": Mutation(
        Lineage, "join", "async", mistakes.begins_a_step_late, first=176
    ),
    "a successor pushes what a pserver has": Mutation(Lineage, "has", "half-async", always(False)),
    "a successor takes the record of another pserver": Mutation(
        Lineage, "_take", "async", mistakes.record_of_another_pserver, first=176
    ),
    "a successor begins at an old position": Mutation(
        RecordedLineage, "record", "async", mistakes.oldest_position
    ),
    "a recovered pserver forgets the new number": Mutation(
        served_job, "find", "async", mistakes.resize_forgotten, kind="resizes", first=501
    ),
    "a change of the number forgets former processes": Mutation(
        Resizing, "former", "sync", always(frozenset()), kind="resizes", first=40
    ),
    "a change of the number is not answered": Mutation(
        Resizing, "done", "sync", always([]), kind="resizes"
    ),
    "a cut lacks the state of a trainer that joins late": Mutation(
        Resuming, "late_states", "geo", always(None), kind="attempts", first=10
    ),
    "a cut lacks the position of a trainer that joins late": Mutation(
        Resuming, "_unseen", "async", always(""), kind="attempts"
    ),
    "a late trainer begins its data anew at a recovered pserver": Mutation(
        JoinCalls, "_begin_from", "async", always(None), kind="attempts", first=68
    ),
    "a late trainer begins its data anew at a backup": Mutation(
        PartHost, "cut", "async", always(None), kind="attempts", first=37
    ),
    "a trainer that joins while a part changes hands is refused": Mutation(
        PserverProcesses,
        "check_same",
        "half-async",
        mistakes.without_backups,
        kind="attempts",
        first=30,
    ),
    "positions of a cut are not dealt to another number": Mutation(
        Resuming, "_deals_again", "async", always(False), kind="attempts"
    ),
    "a trainer is given a newer cut than its job has resumed": Mutation(
        CutCalls,
        "beginning_of",
        "async",
        mistakes.begins_with_the_newest_cut,
        kind="attempts",
        first=19,
    ),
}
