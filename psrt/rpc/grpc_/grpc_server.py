"""The gRPC carrier, server side: one port with psrt.v1.Pserver, health and reflection.

grpc.aio objects belong to their loop, so every public method passes a coroutine to it and waits
with a deadline.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from psrt.core.errors import ErrorCode, UnavailableError
from psrt.rpc.access import EVERYBODY
from psrt.rpc.grpc_ import aio_loop
from psrt.rpc.grpc_.call_limits import CallLimits
from psrt.rpc.grpc_.grpc_calls import GrantOf, GrpcCalls
from psrt.rpc.grpc_.grpc_carrier import GRPC_OPTIONS, KEEPALIVE_OPTIONS, SERVICE
from psrt.rpc.grpc_library import check_newest_only, grpc
from psrt.rpc.host_shares import HOST_SHARE
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.serving import Handler
from psrt.rpc.tls import TlsFiles
from psrt.rpc.unfinished import UNFINISHED_BYTES, UnfinishedFrames
from psrt.rpc.wire import MAX_FRAME_BYTES

_POOL_THREADS = 8
_STRANGER_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),  # a connection without it, of TLS or HTTP/2, ends
    ("grpc.max_concurrent_streams", 1_024),  # calls of one connection
]
_START_S = 10.0
_LAST_BYTES_S = 0.2
_STOP_SLACK_S = 5.0


class GrpcServer:
    """A server that runs from `start` to `stop`; callable from any thread except the loop's.

    `_loop` is None while the server does not run; then the other private fields are not valid.
    """

    def __init__(
        self,
        handler: Handler,
        max_bytes: int = MAX_FRAME_BYTES,
        grant_of: GrantOf = lambda session: EVERYBODY,
        tls: TlsFiles | None = None,
        unfinished: UnfinishedFrames | None = None,
        host_share: float = HOST_SHARE,
    ) -> None:
        self._handler, self._grant_of, self._tls = handler, grant_of, tls
        self._limits = CallLimits(
            max_bytes, unfinished or UnfinishedFrames(UNFINISHED_BYTES), host_share
        )
        self._pool = ThreadPoolExecutor(_POOL_THREADS, thread_name_prefix="psrt-grpc-call")
        self._loop: aio_loop.LoopThread | None = None
        self._server: Any
        self._health: Any
        self._calls: GrpcCalls

    def start(self, endpoint: str) -> int:
        """Serve on `endpoint` (port 0 picks one); returns the port."""
        loop = aio_loop.acquire()
        try:
            bound = loop.run(self._start(endpoint), _START_S)
        except BaseException:
            aio_loop.release()
            raise
        self._loop = loop
        return bound

    def set_serving(self, serving: bool) -> None:
        """Set the reply of grpc.health.v1, for the whole server and for the psrt service."""
        if self._loop is not None:
            self._loop.run(self._set_serving(serving), _START_S)

    def check(self) -> None:
        """Raise an error unless the loop runs a coroutine within some seconds."""
        if self._loop is not None:
            self._loop.run(asyncio.sleep(0), _START_S)

    def stop(self, grace_s: float) -> None:
        """Refuse new calls, let running ones finish for `grace_s`, then cancel them."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run(self._stop(grace_s), grace_s + _STOP_SLACK_S)
            aio_loop.release()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _start(self, endpoint: str) -> int:
        self._calls = GrpcCalls(self._handler, self._pool, self._limits, self._grant_of)
        self._health = health.aio.HealthServicer()
        options = [*GRPC_OPTIONS, *KEEPALIVE_OPTIONS, *_STRANGER_OPTIONS]
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers((self._calls.rpc_table(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME
        reflection.enable_server_reflection(names, self._server)
        await self._set_serving(False)
        try:
            port = _bind(self._server, endpoint, self._tls)
        except UnavailableError:
            await self._server.stop(None)
            raise
        await self._server.start()
        return port

    async def _set_serving(self, serving: bool) -> None:
        states = health_pb2.HealthCheckResponse
        state = states.SERVING if serving else states.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, state)

    async def _stop(self, grace_s: float) -> None:
        await self._health.enter_graceful_shutdown()
        await self._calls.finish(grace_s)
        # One short stop only: a second call during the first has crashed grpc.aio, and health
        # watchers, which never end by themselves, would take all of the grace.
        await self._server.stop(min(grace_s, _LAST_BYTES_S))


def _bind(server: Any, endpoint: str, tls: TlsFiles | None) -> int:
    port = split_endpoint(endpoint)[1]
    try:
        if tls is None:
            return int(server.add_insecure_port(endpoint))
        return int(server.add_secure_port(endpoint, _credentials(tls)))
    except RuntimeError as error:
        raise UnavailableError(
            f"Cannot listen on {endpoint}: {error}.",
            code=ErrorCode.STARTUP_FAILED,
            hint=f"Stop what uses port {port}, or choose another (--port 0 = any free one).",
        ) from error


def _credentials(tls: TlsFiles) -> Any:
    """Credentials that are the newest `tls` files at each new connection."""
    check_newest_only()
    used = [tls.current()]

    def newest() -> Any:
        loaded = tls.current()
        if loaded is used[0]:
            return None
        used[0] = loaded
        return configuration()

    def configuration() -> Any:
        pair = used[0].key, used[0].cert
        return grpc.ssl_server_certificate_configuration([pair], used[0].ca)

    asks = not tls.settings.any_caller
    return grpc.dynamic_ssl_server_credentials(configuration(), newest, asks)
