"""The RPCs of psrt.v1.Pserver on grpc.aio: bytes in, handler on a pool, bytes out.

The event loop moves bytes. Handlers run in a small thread pool. A call that waits for a round holds
no thread: when its future is done, the reply is finished on the pool. The loop itself executes a
short PULL or PUSH while no other call runs: a hand-over to the pool and back takes a tenth of the
time of 13,312 rows of 16. A reply that reports an error becomes a gRPC status with the `pb.Error`
in its trailing metadata. `Attend` is answered at once and stays open until a side leaves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

from psrt.core.errors import (
    AccessError,
    DeadlineError,
    ErrorCode,
    PsrtError,
    UnavailableError,
    WireError,
)
from psrt.core.tracing import carried, span
from psrt.rpc import pb
from psrt.rpc.access import EVERYBODY, Grant
from psrt.rpc.grpc_.call_limits import CallLimits
from psrt.rpc.grpc_.grpc_carrier import SERVICE, SESSION_METADATA, reply_too_large
from psrt.rpc.grpc_library import grpc
from psrt.rpc.methods import Method
from psrt.rpc.serving import Handler, Later, Peer, begin, settle
from psrt.rpc.status import ERROR_METADATA, grpc_status, to_wire
from psrt.rpc.traced_calls import span_of_request
from psrt.rpc.unfinished import GRACE_S
from psrt.rpc.wire import (
    GREETING_BYTES,
    SPLIT_BYTES,
    Joiner,
    Message,
    check_size,
    decode,
    encode,
    split,
    too_large,
)

audit = logging.getLogger("psrt.audit")

GrantOf: TypeAlias = Callable[[str], Grant | None]
"""The grant of a caller that names its session, None = none."""

_SHORT = (Method.PULL, Method.PUSH)
_SHORT_BYTES = 1 << 20


class GrpcCalls:
    """The calls of one server. Coroutines run on the loop; `_idle` is set while `_running` is 0."""

    def __init__(
        self,
        handler: Handler,
        pool: ThreadPoolExecutor,
        limits: CallLimits,
        grant_of: GrantOf = lambda session: EVERYBODY,
    ) -> None:
        self._handler, self._grant_of = handler, grant_of
        self._pool, self._limits = pool, limits
        self._max_bytes = limits.max_bytes
        self._running = self._attending = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self._stopped = asyncio.Event()

    def rpc_table(self) -> Any:
        """Return the RPC handlers, without serializers: they receive and return bytes."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Call": grpc.unary_unary_rpc_method_handler(self._call),
                "CallLarge": grpc.stream_stream_rpc_method_handler(self._call_large),
                "Attend": grpc.unary_stream_rpc_method_handler(self._attend),
            },
        )

    async def finish(self, grace_s: float) -> None:
        """Refuse new calls and wait for running ones, `grace_s` at most."""
        self._stopping = True
        self._stopped.set()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace_s)

    async def _call(self, frame: bytes, context: Any) -> bytes:
        """Serve one frame with one frame."""
        peer = self._peer(context, lasts=False)
        with self._counted(peer.host) as full:
            await _refuse_if(full, context)
            request = await self._read(partial(self._decode, frame, peer), context)
            with span_of_request(request.header, peer):
                reply = await self._reply(request, context, peer)
                with span("reply"):
                    parts = encode(reply)
            size_bytes = sum(len(part) for part in parts)
            if size_bytes > min(SPLIT_BYTES, self._max_bytes):
                await _abort(context, to_wire(self._reply_too_large(size_bytes)))
            return b"".join(parts)

    async def _call_large(self, frames: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        """Serve a split message with a split reply."""
        peer = self._peer(context, lasts=False)
        with self._counted(peer.host) as full:
            await _refuse_if(full, context)
            joiner = Joiner(self._max_bytes)
            try:
                _check_admitted(peer)
                await self._join(joiner, frames, peer)
            except PsrtError as error:
                await _abort(context, to_wire(error))
            request = await self._read(joiner.message, context)
            with span_of_request(request.header, peer):
                reply = await self._reply(request, context, peer)
            size_bytes = sum(tensor.nbytes for tensor in reply.tensors)
            if size_bytes > self._max_bytes:
                await _abort(context, to_wire(self._reply_too_large(size_bytes)))
            for piece in split(reply):
                yield piece

    async def _join(self, joiner: Joiner, frames: AsyncIterator[bytes], peer: Peer) -> None:
        """Receive a split message, in the bytes and the time that unfinished ones have."""
        with ExitStack() as counted:
            try:
                async with asyncio.timeout(GRACE_S) as in_time:
                    async for frame in frames:
                        joiner.add(frame)
                        if joiner.is_first:
                            expected = self._limits.unfinished.expect(peer.host, joiner.size_bytes)
                            left_s = counted.enter_context(expected) - time.monotonic()
                            in_time.reschedule(asyncio.get_running_loop().time() + left_s)
            except TimeoutError:
                raise DeadlineError(
                    f"A message of {peer} was given up: it did not arrive in time.",
                    hint="Check the network; raise call_timeout_s if messages are large.",
                ) from None

    async def _attend(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Serve ATTEND until the caller or this server leaves.

        The call counts neither as running nor among those that `finish` waits for.
        """
        peer = self._peer(context, lasts=True)
        self._attending += 1
        try:
            await _refuse_if(self._limits.full(self._attending), context)
            attend = await self._read(partial(self._decode, request, peer), context)
            reply = await self._reply(attend, context, peer)
            yield b"".join(encode(reply))
            await self._stopped.wait()
        finally:
            self._attending -= 1
            peer.has_left = True

    def _decode(self, request: bytes, peer: Peer) -> Message:
        is_stranger = peer.grant is None
        check_size(len(request), GREETING_BYTES if is_stranger else self._max_bytes)
        return decode(request)

    def _reply_too_large(self, size_bytes: int) -> WireError:
        """The error of a reply over the unary limit (CallLarge helps) or the pserver's limit."""
        if size_bytes <= self._max_bytes:
            return reply_too_large(size_bytes)
        return too_large(size_bytes, self._max_bytes)

    async def _read(self, read: Callable[[], Message], context: Any) -> Message:
        """The request that `read` decodes; an error ends the call here."""
        try:
            self._refuse_if_stopping()
            return read()
        except PsrtError as error:
            await _abort(context, to_wire(error))
            raise

    async def _reply(self, request: Message, context: Any, peer: Peer) -> Message:
        """Run the handler and wait for a `Later`; a reported error ends the call here."""
        reply = await self._execute(request, peer)
        if reply.header.HasField("error"):
            await _abort(context, reply.header.error)
        return reply

    async def _execute(self, request: Message, peer: Peer) -> Message:
        loop = asyncio.get_running_loop()
        if self._running == 1 and _is_short(request):
            reply = begin(self._handler, request, peer)
        else:
            handle = carried(partial(begin, self._handler, request, peer))
            reply = await loop.run_in_executor(self._pool, handle)
        while isinstance(reply, Later):
            with span("wait"):
                await _done(reply.future, loop)
            finish = carried(partial(settle, reply, request.header, peer))
            reply = await loop.run_in_executor(self._pool, finish)
        return reply

    def _peer(self, context: Any, lasts: bool) -> Peer:
        """The caller, admitted if its metadata name a session.

        After a call that does not last, nothing is known about its process.
        """
        metadata = context.invocation_metadata() or ()
        session = next((value for key, value in metadata if key == SESSION_METADATA), "")
        peer = Peer("grpc", context.peer(), lasts)
        peer.grant = self._grant_of(str(session))
        return peer

    def _refuse_if_stopping(self) -> None:
        if self._stopping:
            raise UnavailableError(
                "The pserver is shutting down; the call was refused.",
                code=ErrorCode.STOPPING,
                hint="See the end of its log for the reason.",
            )

    @contextmanager
    def _counted(self, host: str) -> Iterator[UnavailableError | None]:
        """Count a call inside the block; gives the error of one too many."""
        self._running += 1
        self._idle.clear()
        full = self._limits.take(self._running, host)
        try:
            yield full
        finally:
            if full is None:
                self._limits.hosts.give_back(host)
            self._running -= 1
            if not self._running:
                self._idle.set()


def _check_admitted(peer: Peer) -> None:
    """Raise `AccessError` for a stranger, before a large message is received."""
    if peer.grant is None:
        error = AccessError(
            "A large call was refused: its caller was not admitted.",
            hint="Give it a token_file, and install the same release.",
        )
        audit.warning("refused %s: %s", peer, error.message)
        raise error


def _is_short(request: Message) -> bool:
    """True if the handler never waits and is quick enough not to delay a health check."""
    size_bytes = sum(tensor.nbytes for tensor in request.tensors)
    return request.header.method in _SHORT and size_bytes <= _SHORT_BYTES


async def _done(future: Future[None], loop: asyncio.AbstractEventLoop) -> None:
    """Wait for `future`, without `asyncio.wrap_future`: when a caller leaves, that would cancel the
    future itself, which belongs to the round."""
    done = asyncio.Event()

    def wake(_: Future[None]) -> None:
        # The loop is closed if the server stopped waiting before the round ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(wake)
    await done.wait()


async def _refuse_if(full: UnavailableError | None, context: Any) -> None:
    if full is not None:
        await _abort(context, to_wire(full))


async def _abort(context: Any, error: pb.Error) -> None:
    """End the call with a status; always raises."""
    metadata = ((ERROR_METADATA, error.SerializeToString()),)
    await context.abort(grpc_status(error), error.message, metadata)
