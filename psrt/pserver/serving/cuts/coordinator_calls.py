"""Handlers of the calls to the coordinator of a job's cuts: WATCH, PART and CHECKPOINT."""

from __future__ import annotations

from psrt.core.clock import Clock
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.cut_moments import CutMoments
from psrt.pserver.serving.cuts.cut_requests import cut_reply, no_cut
from psrt.pserver.serving.cuts.end_cut import NOT_TRAINED, EndCut
from psrt.pserver.serving.cuts.resizes import Resizes
from psrt.rpc.serving import Later, deadline_of
from psrt.rpc.wire import Message


class CoordinatorCalls:
    """Trainers stay while `end_cut` is recording the end of the job."""

    def __init__(
        self, cuts: CutCalls, moments: CutMoments, resizes: Resizes, clock: Clock, end_cut: EndCut
    ) -> None:
        self._cuts, self._moments, self._resizes = cuts, moments, resizes
        self._clock, self._end_cut = clock, end_cut

    def watch(self, message: Message) -> Message | Later:
        header = message.header
        deadline_s = deadline_of(header, self._clock.now())
        if self._end_cut.is_left_out:
            raise no_cut(NOT_TRAINED)
        if self._end_cut.is_made and self._cuts.durability.is_replicated:
            raise no_cut("that at the end of the job has been made")  # with backups there is one
        caller = self._cuts.coordinating(header).watch(header.cut.number, deadline_s)
        return Later(
            caller.future, lambda: cut_reply(caller.number, self._cuts.complete, caller.trainers)
        )

    def part(self, message: Message) -> Message | Later:
        part = message.header.cut_part
        coordinating = self._cuts.coordinating(message.header)
        caller = coordinating.part(part.number, part.endpoint, part.record, part.problem)
        return Later(caller.future, lambda: cut_reply(caller.number))

    def checkpoint(self, message: Message) -> Message | Later:
        """Handle CHECKPOINT; lingering trainers join the cut at the end of the job."""
        if message.header.cut.hurry:
            self._moments.hurry()
            if self._cuts.coordination is None and self._cuts.settings is not None:
                return cut_reply(0)  # its sender asks the first pserver for the cut
        self._resizes.check(message)
        if self._cuts.coordination is not None and not self._end_cut.is_recording:
            self._moments.refuse_without_trainers()
        if message.header.cut.trainers:
            return self._resizes.request(message)
        return self._asked(message)

    def _asked(self, message: Message) -> Later:
        """Ask for a cut. Once training is over, one under way has all of it."""
        cut, first = message.header.cut, self._cuts.coordinating(message.header)
        is_late = cut.anew or 0 < first.proposed <= cut.newest  # for the cut under way
        caller = first.request(anew=is_late and not self._end_cut.is_recording)
        return Later(caller.future, lambda: cut_reply(caller.number))
