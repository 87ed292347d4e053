"""Wrong functions: each takes an original of psrt and returns one with a mistake in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from psrt.communicator.async_.gradient_queue import Group
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.async_.ssp import SspCommunicator
from psrt.communicator.base import Position, no_position
from psrt.communicator.base_communicator import BaseCommunicator
from psrt.communicator.requests import PserverGroup
from psrt.communicator.requests.lineage import Lineage
from psrt.communicator.requests.retained import RetainedPush, RetainedPushes
from psrt.pserver.checkpoints import find_cut
from psrt.pserver.checkpoints.served_job import RecoveredPart
from psrt.pserver.decisions.dedupe import SeenSequences
from psrt.pserver.decisions.lineages import RecordedLineage
from psrt.pserver.decisions.member import MemberState
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.decisions.rounds import Rounds
from psrt.pserver.frozen.change_marks import CUTS, ChangeMarks
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.resuming import Resuming
from psrt.pserver.serving.durable import Durability
from psrt.pserver.serving.durable.delta_writer import DeltaWriter
from psrt.pserver.serving.durable.part_source import PartSource
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.rpc.client import Client
from psrt.storage.directory import Directory


def always(value: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda original: lambda *given, **named: value


def next_key_in_every_attempt(original: Callable[..., Any]) -> Callable[..., Any]:
    def attempt(self: Client, message: Any, left_s: float) -> Any:
        key = message.header.push_key
        if key.sequence:
            key.sequence = self.next_push_key().sequence
        return original(self, message, left_s)

    return attempt


def first_trainer_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: original(self)[1:]


def gaps_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: SeenSequences, sequence: int) -> bool:
        self.beyond.clear()
        return original(self, sequence)

    return add


def gap_taken_as_seen(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: SeenSequences, sequence: int) -> bool:
        is_new = original(self, sequence)
        self.complete_to = max(self.complete_to, sequence)
        return is_new

    return add


def mean_over_one_more(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda pushes, trainers, *rest: original(pushes, trainers + 1, *rest)


def in_reverse(original: Callable[..., Any]) -> Callable[..., Any]:
    def execute(self: Any, instructions: Any) -> None:
        original(self, list(instructions)[1:] if len(instructions) > 1 else instructions)

    return execute


def replaced_without_withdrawal(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, trainer: []


def one_gradient_less(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(self: Group, gradient: Any, step: int) -> None:
        self.count += 1
        self.last = step

    return add


def only_the_first_of_a_group(original: Callable[..., Any]) -> Callable[..., Any]:
    def sent(self: MergeQueue, merged: Any) -> None:
        for name, group in merged.groups.items():
            self._queues[name]._groups.appendleft(group)
            self._queues[name].waiting += group.count
        original(self, merged)

    return sent


def any_list(original: Callable[..., Any]) -> Callable[..., Any]:
    def get(self: IdListCache, trainer: int, table: str, number: int) -> Any:
        return next((kept.again() for kept in self._lists.values()), None)

    return get


def waits_for_all(original: Callable[..., Any]) -> Callable[..., Any]:
    def awaited(self: Membership) -> list[int]:
        lost = [m.trainer for m in self.members if m.state is MemberState.COMPLETED]
        return sorted([*original(self), *lost])

    return awaited


def applies_twice(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply_now(*given: Any) -> None:
        original(*given)
        original(*given)

    return apply_now


def skips_the_last_table(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda pushes, *rest: original(pushes[:-1], *rest)


def answers_at_once(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: PserverGroup, method: Any, requests: Any, *rest: Any, **named: Any) -> Any:
        return original(self, method, requests[:1], *rest, **named)

    return call


def round_stays_open(original: Callable[..., Any]) -> Callable[..., Any]:
    def closed(self: Rounds) -> Any:
        answers = original(self)
        self.last_applied.clear()
        return answers

    return closed


def a_step_ahead(original: Callable[..., Any]) -> Callable[..., Any]:
    def begin(self: SspCommunicator, wanted: Any) -> None:
        self._slowest = 1 << 40
        original(self, wanted)

    return begin


def does_not_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    def pause(self: MergeQueue, timeout_s: float) -> bool:
        self._paused = True
        return True

    return pause


def position_of_the_step_before(original: Callable[..., Any]) -> Callable[..., Any]:
    former: dict[int, Position] = {}

    def continues_at(self: BaseCommunicator, position: Position) -> None:
        self._next_position = former.get(id(self), no_position)
        former[id(self)] = position

    return continues_at


def confirmed_when_written(original: Callable[..., Any]) -> Callable[..., Any]:
    def write_part(
        directory: Any, number: int, index: int, dense: Any, sparse: Any, *rest: Any, **named: Any
    ) -> Any:
        record = original(directory, number, index, dense, sparse, *rest, **named)
        for table in (*dense, *sparse):
            table.confirm()
        return record

    return write_part


def changes_of_a_given_up_cut_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    def freeze(self: ChangeMarks, consumer: str = CUTS) -> Any:
        changes = self._consumers[consumer]
        changes.pending, changes.pending_dropped = None, []
        return original(self, consumer)

    return freeze


def changes_for_one_consumer_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def freeze(self: ChangeMarks, consumer: str = CUTS) -> Any:
        others = self._consumers
        self._consumers = {consumer: others[consumer]}
        found = original(self, consumer)
        self._consumers = others
        return found

    return freeze


def durable_before_it_is_written(original: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: DeltaWriter, cut: Any) -> None:
        self._confirm(cut.point)
        original(self, cut)

    return write


def without_push_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    def local_facts(*given: Any) -> dict[str, Any]:
        facts: dict[str, Any] = original(*given)
        facts["state"]["pushes"]["admitted"] = []
        return facts

    return local_facts


def durable_before_it_is_sent(original: Callable[..., Any]) -> Callable[..., Any]:
    def take(self: PartSource, is_full: bool) -> Any:
        cut = original(self, is_full)
        if cut is not None:
            self._durability.progress.confirm(cut.point, self._clock.now())
        return cut

    return take


def only_whole_ticks(original: Callable[..., Any]) -> Callable[..., Any]:
    def put(service: Any, pages: Any) -> None:
        original(service, [page for page in pages if page.meta["since"] is None])

    return put


def confirmed_though_it_failed(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, cut: self.confirm(cut)


def keeps_nothing_for_the_cut(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given, **named: None


def dropped_too_early(original: Callable[..., Any]) -> Callable[..., Any]:
    def takes_part(self: RetainedPushes, number: int) -> None:
        original(self, number)
        self.completed(number)

    return takes_part


def repeated_with_new_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    def of(self: RetainedPushes, endpoint: int) -> tuple[list[RetainedPush], int]:
        pushes, complete = original(self, endpoint)
        for push in pushes:
            push.header.push_key.CopyFrom(self._clients[endpoint].next_push_key())
        return pushes, complete

    return of


def without_the_last(original: Callable[..., Any]) -> Callable[..., Any]:
    def of(self: RetainedPushes, endpoint: int) -> tuple[list[RetainedPush], int]:
        pushes, complete = original(self, endpoint)
        return pushes[:-1], complete

    return of


def begins_a_step_late(original: Callable[..., Any]) -> Callable[..., Any]:
    def join(self: Lineage, *given: Any) -> str:
        position = original(self, *given)
        self.begun += bool(position)
        return str(int(position) + 1) if position else ""

    return join


def record_of_another_pserver(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, endpoint, found: original(self, 1 - endpoint, found)


def oldest_position(original: Callable[..., Any]) -> Callable[..., Any]:
    def record(self: RecordedLineage, progress: Any) -> None:
        position = self.position or progress.position
        original(self, progress)
        self.position = position

    return record


def later_decisions(original: Callable[..., Any]) -> Callable[..., Any]:
    def joins(self: Durability, *given: Any) -> None:
        if self._served is not None and self._served._began is not None:
            self._served._began |= self._ask(lambda state, now: self._facts(state))
        original(self, *given)

    return joins


def without_backups(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, found, trainer, have_backups=False: original(self, found, trainer)


def resize_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    def find(directory: Directory, name: str) -> RecoveredPart | None:
        found = original(directory, name)
        return found and replace(found, resized_to=0, began_at=0)

    return find


def begins_with_the_newest_cut(original: Callable[..., Any]) -> Callable[..., Any]:
    def beginning_of(self: CutCalls, trainer: int, trainers: int) -> Any:
        if self.resumed is None:
            return original(self, trainer, trainers)
        newest = find_cut(self.resumed.directory, "latest")
        return Resuming(newest).beginning_of(trainer, trainers)

    return beginning_of
