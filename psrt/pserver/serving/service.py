"""The rpc handler of a pserver: one small function per method, over tables and decisions.

Handler threads of the carriers call `handle`. Admission comes last: a call is checked against the
tables before it reaches `PserverState`, so that every admitted push can be applied.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from psrt.core.clock import Clock, MonotonicClock, hours_since_1970
from psrt.core.errors import PsrtError
from psrt.core.process import process_facts
from psrt.core.randomness import system_random
from psrt.core.specs import TableSpec
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import RecoveredPart, SavedCut, Settings
from psrt.pserver.decisions import JobIdentity, Member, PserverState, describe, take_over
from psrt.pserver.eviction import Upkeep
from psrt.pserver.loading import TableLoader, handled_later
from psrt.pserver.serving.connections import TrainerConnections
from psrt.pserver.serving.cuts import CoordinatorCalls, CutCalls, CutMoments, EndCut, Resizes
from psrt.pserver.serving.durable import PartSource
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.join_calls import Beginning, JoinCalls, OnRegistered
from psrt.pserver.serving.request_headers import caller_of, no_memory, no_method
from psrt.pserver.serving.step_calls import StepCalls
from psrt.pserver.serving.table_calls import export, give, shrink
from psrt.pserver.tables import HelperThreads, Meters, SlabPreallocator, TableRegistry
from psrt.rpc import pb
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")


class PserverService:
    """The service of one process: `start`, many `handle`, `stop`.

    `on_end(error)` is called once, on any thread: when all trainers have completed (None), the job
    was aborted, or its last trainers left. A job must have `trainers` trainers, 0 = any number.
    Large requests use up to `helper_threads` more threads. A part of another pserver has the
    `incarnation` of its tables. `table_bytes` = 0 sets no limit.
    """

    def __init__(
        self,
        *,
        stripes: int,
        wait_timeout_s: float,
        trainers: int = 0,
        clock: Clock | None = None,
        on_end: Callable[[PsrtError | None], None] = lambda error: None,
        crashes: CrashReport | None = None,
        hours: Callable[[], int] = hours_since_1970,
        helper_threads: int = 0,
        cuts: Settings | None = None,
        resumed: SavedCut | None = None,
        carrier: Carrier = "stream",
        recovered: RecoveredPart | None = None,
        incarnation: int = 0,
        on_registered: OnRegistered = lambda job, endpoints, part, is_replicated: None,
        on_resized: Callable[[int], None] = lambda trainers: None,
        table_bytes: int = 0,
    ) -> None:
        self._crashes = crashes or CrashReport()
        ahead = self._preallocator = SlabPreallocator(self._crashes)
        self._helpers = HelperThreads(helper_threads, self._crashes)
        self.tables = TableRegistry(stripes, hours, ahead, self._helpers, table_bytes)
        self.meters, self._id_lists = Meters(), IdListCache()
        self._upkeep = Upkeep(self.tables.all_sparse, self.meters, hours, self._job_time)
        self._clock, self._connections = clock or MonotonicClock(), TrainerConnections()
        self._incarnation = incarnation or _incarnation_of(recovered)
        self._cuts = CutCalls(
            *(cuts, resumed, self._incarnation, self.tables, self._upkeep, self._clock),
            *(self._crashes, carrier, recovered, bool(incarnation)),
        )
        of_state = wait_timeout_s, trainers, self._connections.is_gone, self._cuts.resuming.counts
        state = PserverState(*of_state, proposed_cut=lambda: self._cuts.proposed)
        actions = self._ended, self._forget, self._cuts.freeze, self._completed, self._cuts.no_part
        self._runner = EffectRunner(state, self.meters, self._clock, *actions)
        self.began_with = self._cuts.began_with
        of_cuts = self._cuts, self._runner, self._clock, self._crashes, carrier
        self.moments, self._end_cut = CutMoments(*of_cuts), EndCut(*of_cuts)
        self._resizes = Resizes(self._cuts, self._runner, self._forget, on_resized)
        self._cuts.run_by(self._runner, self._resizes.ended)
        of_loads = self._clock, self._crashes, self._load_failed, self._loaded
        self._loader = TableLoader(self.tables, helper_threads + 1, *of_loads)
        of_joins = self._runner, self.tables, self._upkeep, self._loader, self._cuts
        self._joins = JoinCalls(*of_joins, self._incarnation, self._job_time, on_registered)
        of_steps = self._runner, self.tables, self._id_lists, self._cuts, self.meters, self._clock
        self._steps, self._on_end = StepCalls(*of_steps), on_end
        self._methods = self._handlers()
        if recovered is not None:
            self._joins.recover(recovered)

    def _handlers(self) -> dict[int, Callable[[Message], Message | Later]]:
        of_cuts = self._cuts, self.moments, self._resizes, self._clock
        coordinator = CoordinatorCalls(*of_cuts, self._end_cut)
        return {
            Method.HELLO: self._joins.hello,
            Method.REGISTER: self._joins.register,
            Method.PULL: self._steps.pull,
            Method.PUSH: self._steps.push,
            Method.EXCHANGE: self._steps.exchange,
            Method.MEET: self._steps.meet,
            Method.COMPLETE: self._complete,
            Method.EXPORT: self._export,
            Method.STATUS: self._status,
            Method.SHRINK: self._shrink,
            Method.WATCH: coordinator.watch,
            Method.CUT: self._resizes.cut,
            Method.PART: coordinator.part,
            Method.CHECKPOINT: coordinator.checkpoint,
            Method.ATTEND: self._joins.attend,
            Method.RESENT: self._joins.resent,
            Method.KEEP_STATE: lambda message: self._cuts.states.keep(message),
            Method.READ_STATE: lambda message: self._cuts.states.read(message),
            Method.GIVE: partial(give, self.tables),
        }

    def serves_as(self, name: str) -> None:
        """Keep a file in the directory of cuts by which pserver `name` recovers when killed."""
        self._cuts.name = name

    @property
    def job_id(self) -> str:
        """The job that is served; empty before a trainer has joined."""
        return self._runner.ask(lambda state, now: state.job.job_id if state.job else "")

    def expect(
        self, job: JobIdentity, tables: Sequence[TableSpec], begins: Beginning = ("", ())
    ) -> None:
        """Belong to `job` and create `tables`, as this pserver `begins`, before trainers join."""
        self._runner.ask(lambda state, now: state.expect(job))
        if begins[0]:
            self._joins.begin_with(*begins, job)
        self._joins.create(tables, job)

    def keep(self, job: JobIdentity, specs: Sequence[TableSpec]) -> None:
        """Make the tables of a part that another pserver serves, for ticks of it."""
        self._joins.create(specs, job)

    def take_over(self, saved: Mapping[str, Any], elsewhere: Sequence[Member]) -> None:
        """Serve a part from its last tick on; another part here has the members `elsewhere`."""
        self._runner.ask(lambda state, now: take_over(state, saved, elsewhere, now))

    def source(self) -> PartSource:
        """The ticks of this part, for one backup."""
        facts = self._incarnation, self._runner, self.tables, self._upkeep
        return PartSource(*facts, self._cuts.durability, self._clock)

    def members(self) -> list[Member]:
        """The trainers of the job; none before it has begun."""
        return self._runner.ask(lambda state, now: list(state.members.members))

    def failover_waits(self, part: int, trainers: Collection[int]) -> None:
        """Record the trainers that hold a failover back; raises the error that ended the job."""
        self._runner.ask(lambda state, now: state.failover_waits(part, trainers))

    def start(self) -> None:
        """Start the threads for deadlines and for limits of tables."""
        self._runner.start(self._crashes)
        self._upkeep.start(self._crashes)

    def stop(self) -> None:
        """End all waits and threads."""
        self._upkeep.stop()
        self._loader.stop()
        self._cuts.stop()
        self._preallocator.stop()
        self._runner.stop()
        self._helpers.close()

    def expire(self) -> None:
        """End the waits whose deadline has passed by the service's clock."""
        self._runner.expire()
        self._loader.expire()

    def handle(self, message: Message, peer: Peer) -> Message | Later:
        """Handle one call; raises `PsrtError` for an error of the caller.

        A call for tables that are being loaded is handled once they are complete.
        """
        if self.tables.loading:
            handle = partial(self.handle, message, peer)
            later = handled_later(self._loader, message.header, self._clock, handle)
            if later is not None:
                return later
        self.meters.calls.add()
        try:
            self._joins.check_process(message.header)
            method = self._methods.get(message.header.method)
            if method is None:
                raise no_method(message.header)
            reply = method(message)
            if peer.lasts and not self._connections.has(peer):
                self._connections.track(message.header, peer)
            return reply
        except PsrtError as error:
            self.meters.refuse(error, message.header.trainer)
            log.debug("refused method %d of %s: %s", message.header.method, peer, error)
            raise
        except MemoryError as error:  # while a request was read or its reply made
            raise no_memory(message.header, error) from error

    @property
    def is_recording(self) -> bool:
        """True while the cut at the end of the job is made; takes no lock."""
        return self._end_cut.is_recording

    def status(self) -> dict[str, Any]:
        """The content of STATUS as plain data."""
        return {
            **process_facts(),
            **self._runner.ask(describe),
            **self._runner.ask(self._cuts.durability.describe),
            "incarnation": self._incarnation,
            "cuts": self._cuts.describe(),
            "tables": self.tables.describe(),
            "loading": self._loader.describe(),
            **self.meters.describe(),
        }

    def _job_time(self) -> int:
        """Rounds in Sync, else mini-batches of all trainers; equal on all pservers of a job."""
        return self._runner.ask(lambda state, now: max(state.open_round, state.global_step))

    # --- methods -----------------------------------------------------------------------------

    def _complete(self, message: Message) -> Message:
        header, complete = message.header, message.header.complete
        if complete.interrupted:
            self._runner.decide(lambda state, now: state.leave(*caller_of(header), now))
            return Message(pb.Header())
        asked = complete.will_confirm, complete.confirms, complete.position
        members = self._runner.ask(lambda state, now: state.members_of_job(header.trainer))
        is_first = not members.has_completed(header.trainer)
        self._runner.decide(lambda state, now: state.complete(*caller_of(header), now, *asked))
        if is_first:
            self._forget(header.trainer)
            log.info("trainer %d completed", header.trainer)
        is_over = not self.is_recording  # trainers stay for the cut at the end of the job
        ended = members.ended() and is_over
        recorded = self._cuts.durability.has_recorded(header.trainer) and is_over
        return Message(pb.Header(complete=pb.Complete(ended=ended, recorded=recorded)))

    def _forget(self, trainer: int) -> None:
        """Drop what is kept for a trainer that has completed or is lost."""
        self.tables.release(trainer)
        self._id_lists.release(trainer)
        self._steps.release(trainer)
        self._cuts.left(trainer)

    def _export(self, message: Message) -> Message:
        self._runner.ask(lambda state, now: state.recovery.check())
        return export(self.tables, message.header.export)

    def _completed(self) -> bool:
        return self._end_cut.completed()

    def _ended(self, error: PsrtError | None) -> None:
        def end() -> None:
            if not self._loader.has_failed:  # else its files may still be read
                self._cuts.job_ended()
            self._on_end(error)

        if error is None:
            self._end_cut.afterwards(end)
        else:
            end()

    def _loaded(self) -> None:
        self._upkeep.tables_added()
        self._cuts.durability.hurry()

    def _load_failed(self, error: PsrtError) -> None:
        self._runner.decide(lambda state, now: state.abort(error))

    def _shrink(self, message: Message) -> Message:
        self._runner.ask(lambda state, now: state.called(*caller_of(message.header), now))
        return shrink(self.tables, self._upkeep, message.header)

    def _status(self, message: Message) -> Message:
        return Message(pb.Header(status_json=json.dumps(self.status())))


def _incarnation_of(recovered: RecoveredPart | None) -> int:
    return recovered.incarnation if recovered else system_random.getrandbits(63) | 1
