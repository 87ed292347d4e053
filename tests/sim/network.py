"""Links between simulated processes, and a carrier over them.

Every frame of a history has a number, in the order in which frames are sent. A fault strikes the
frame whose number it names, so faults are data: removing one leaves a history that can be run.
A process that dies resets its connections, as a kernel does; a silent link resets nothing.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from psrt.core.errors import DeadlineError, UnavailableError
from psrt.rpc.methods import Method
from psrt.rpc.serving import Handler, Peer, begin, settle
from psrt.rpc.wire import Message, aligned, aligned_empty, decode, encode
from tests.sim.world import Fiber, Process, World

NEAR_S, FAR_S = 0.0001, 0.002
LATE_S = 3.0
BLOCK_BYTES = 1 << 14


class LinkFault(enum.Enum):
    """A failure of one frame; the value describes it in a history."""

    DOUBLE = "arrives twice"
    LATE = "arrives seconds late"
    CUT = "finds its connection broken"
    SILENT = "is lost, with all later frames of its connection"


@dataclass
class Listener:
    """A process that serves an endpoint."""

    process: Process
    handler: Handler


class FrameMemory:
    """Aligned memory of received frames; a block of it lives as long as a tensor in it."""

    def __init__(self) -> None:
        self._block, self._used = aligned_empty(0), 0

    def decoded(self, frame: bytes) -> Message:
        end = self._used + len(frame)
        if end > len(self._block):
            self._block = aligned_empty(max(BLOCK_BYTES, len(frame)))
            self._used, end = 0, len(frame)
        memory = self._block[self._used : end].data
        memory[:] = frame
        self._used = aligned(end)
        return decode(memory)


class Network:
    """All links of a history; `faults` by frame number."""

    def __init__(self, world: World, faults: Mapping[int, LinkFault], carrier: str) -> None:
        self.world, self.carrier = world, carrier
        self.memory = FrameMemory()
        self._faults = faults
        self._frames = itertools.count()
        self._listeners: dict[str, Listener] = {}
        self._open: list[SimConnection] = []

    def listen(self, endpoint: str, process: Process, handler: Handler) -> None:
        """Serve `endpoint` from now on; the connections of a former process are gone."""
        self._listeners[endpoint] = Listener(process, handler)
        process.on_death.append(lambda: self._reset(process))

    def dial(self, process: Process) -> Callable[[str], SimConnection]:
        """The carrier of the clients of `process`."""
        process.on_death.append(lambda: self._reset(process))
        return lambda endpoint: self._connect(process, endpoint)

    def frame(self, what: str) -> tuple[LinkFault | None, float]:
        """The fault of the next frame, and its time under way in seconds."""
        number = next(self._frames)
        fault = self._faults.get(number)
        self.world.note(f"frame {number}: {what} {'is sent' if fault is None else fault.value}")
        spread = self.world.random.uniform(NEAR_S, FAR_S)
        return fault, LATE_S if fault is LinkFault.LATE else spread

    def _connect(self, process: Process, endpoint: str) -> SimConnection:
        self.world.sleep(NEAR_S)
        listener = self._listeners.get(endpoint)
        if listener is None or listener.process.is_dead:
            raise UnavailableError(f"Cannot connect to {endpoint}: connection refused.")
        connection = SimConnection(self, process, listener, endpoint)
        self._open.append(connection)
        return connection

    def _reset(self, process: Process) -> None:
        gone = [each for each in self._open if process in (each.caller, each.listener.process)]
        self._open = [each for each in self._open if each not in gone]
        for connection in gone:
            connection.cut()


class SimConnection:
    """One connection; one call at a time."""

    def __init__(
        self, network: Network, caller: Process, listener: Listener, endpoint: str
    ) -> None:
        self.caller, self.listener, self.where = caller, listener, endpoint
        self.peer: Peer | None = Peer(network.carrier, f"{caller.name}")
        self._network, self._world = network, network.world
        self._broken = self._silent = False
        self._awaits: tuple[Fiber, int] | None = None
        self._reply: bytes | None = None

    def call(self, message: Message, timeout_s: float) -> Message:
        world, header = self._world, message.header
        fiber = world.current
        assert fiber is not None
        what = f"{Method(header.method).name} of {self.caller.name} to {self.where}"
        request, number = b"".join(encode(message)), int(header.request_id)
        self._awaits, self._reply = (fiber, number), None
        self._send(what, lambda: self._arrived(request, number, what))
        deadline_s = world.now + timeout_s
        while self._reply is None and not self._broken:
            if not world.park(deadline_s, what):
                break
        self._awaits = None
        if self._reply is not None:
            return self._network.memory.decoded(self._reply)
        if self._broken:
            raise UnavailableError(f"The connection to {self.where} was lost.")
        raise DeadlineError(f"{self.where} did not reply within {timeout_s:.3f} s.")

    def abort(self) -> None:
        self.cut()

    def close(self) -> None:
        self._left()

    def cut(self) -> None:
        """Break the connection for both ends."""
        self._broken = True
        self._left()
        if self._awaits is not None:
            self._world.wake(self._awaits[0])

    def _left(self) -> None:
        """Let the listening process see the end, whoever still refers to the peer."""
        if self.peer is not None:
            self.peer.has_left, self.peer = True, None

    def _send(self, what: str, arrive: Callable[[], None]) -> None:
        fault, delay_s = self._network.frame(what)
        world = self._world
        if fault is LinkFault.SILENT:
            self._silent = True
        if self._silent:
            return
        if fault is LinkFault.CUT:
            world.at(world.now + delay_s, self.cut)
            return
        world.at(world.now + delay_s, arrive)
        if fault is LinkFault.DOUBLE:
            world.at(world.now + 2 * delay_s, arrive)

    def _arrived(self, request: bytes, number: int, what: str) -> None:
        """Let the listening process handle a request, on a fiber of its own."""
        process, peer = self.listener.process, self.peer
        if process.is_dead or self._broken or peer is None:
            return

        def handle() -> None:
            message = self._network.memory.decoded(request)
            outcome = begin(self.listener.handler, message, peer)
            while not isinstance(outcome, Message):
                outcome = settle(outcome, message.header, peer)
            reply = b"".join(encode(outcome))
            self._send(f"reply to {what}", lambda: self._replied(reply, number))

        self._world.spawn(process, what, handle)

    def _replied(self, reply: bytes, number: int) -> None:
        if self._awaits is None or self._awaits[1] != number or self._broken:
            return
        self._reply = reply
        self._world.wake(self._awaits[0])
