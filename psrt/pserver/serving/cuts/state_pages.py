"""Pages of trainer states as messages: KEEP_STATE and READ_STATE."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from psrt.core.errors import JobError, WireError
from psrt.pserver.checkpoints import Cutting, SavedCut, SentPage
from psrt.pserver.decisions import WaitingCall
from psrt.pserver.serving.request_headers import caller_of
from psrt.rpc import pb
from psrt.rpc.wire import Message

NOBODY: Mapping[int, int] = MappingProxyType({})


class StateCalls:
    """Handlers of KEEP_STATE and READ_STATE; `resumed` is the cut that trainers go on from.

    `restored` has the processes that do so already: incarnations by trainer.
    """

    def __init__(
        self,
        cutting: Cutting | None,
        resumed: SavedCut | None,
        restored: Mapping[int, int] = NOBODY,
    ) -> None:
        self._cutting, self._resumed = cutting, resumed
        self._restored = dict(restored)

    def keep(self, message: Message) -> Message:
        """Write a page of the caller's state into the cut under way."""
        if self._cutting is None:
            raise JobError(
                "this pserver makes no cuts, so it keeps no states of trainers; the page was "
                "refused.",
                hint="Start all pservers of the job with the same --checkpoint-dir.",
            )
        self._cutting.states.put(sent_page(message))
        return Message(pb.Header())

    def read(self, message: Message) -> Message:
        """A page of a trainer's state in the resumed cut, for one process of the caller's role.

        A process that replaces it goes on without: the residuals may have been pushed meanwhile.
        """
        trainer, incarnation = caller_of(message.header)
        if self._restored.setdefault(trainer, incarnation) != incarnation:
            return no_state()
        return stored_page(self._resumed, message.header.state_page)


def senders_of_states(calls: Iterable[WaitingCall], index: int, pservers: int) -> dict[int, int]:
    """The processes that send their states to pserver `index`: incarnations by trainer."""
    return {call.trainer: call.incarnation for call in calls if call.trainer % pservers == index}


def sent_page(message: Message) -> SentPage:
    """The page that a KEEP_STATE carries; raises `WireError` if it is malformed."""
    sent, names = message.header.state_page, list(message.header.state_page.arrays)
    try:
        meta = json.loads(sent.meta)
    except ValueError as error:
        raise _malformed(message, "its meta is not JSON") from error
    if not isinstance(meta, dict):
        raise _malformed(message, "its meta is not a JSON object")
    if len(names) != len(message.tensors) or len(set(names)) < len(names):
        raise _malformed(message, f"it has {len(message.tensors)} tensors with names {names}")
    arrays = dict(zip(names, message.tensors, strict=True))
    where = sent.cut, *caller_of(message.header), sent.page
    return SentPage(*where, is_last=sent.last, meta=meta, arrays=arrays)


def stored_page(resumed: SavedCut | None, asked: pb.StatePage) -> Message:
    """The reply to a READ_STATE: the page, or none if the cut has no such state."""
    found = resumed.state_page(asked.trainer, asked.page) if resumed is not None else None
    trainers = resumed.states if resumed is not None else 0
    if found is None:
        return no_state(trainers)
    page, is_last = found
    header = pb.StatePage(meta=json.dumps(page.meta), arrays=page.arrays, trainers=trainers)
    header.last = is_last
    return Message(pb.Header(state_page=header), list(page.arrays.values()))


def no_state(trainers: int = 0) -> Message:
    """The reply to a READ_STATE for which there is nothing."""
    return Message(pb.Header(state_page=pb.StatePage(last=True, trainers=trainers)))


def _malformed(message: Message, what: str) -> WireError:
    trainer, _ = caller_of(message.header)
    return WireError(
        f"a page of the state of trainer {trainer} was refused: {what}.",
        hint="Trainer and pserver need one version of psrt.",
    )
