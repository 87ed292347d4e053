"""grpc_: files in reading order.

grpc_carrier  The gRPC carrier, client side: control always, data when a job asks for it
aio_loop      The one asyncio loop of a process that grpc.aio runs on
grpc_calls    The two RPCs of psrt.v1.Pserver on grpc.aio: bytes in, handler on a pool, bytes
              out
grpc_server   The gRPC carrier, server side: one port with psrt.v1.Pserver and grpc.health.v1
"""

from __future__ import annotations

from psrt.rpc.grpc_.grpc_carrier import GrpcConnection
from psrt.rpc.grpc_.grpc_server import GrpcServer

__all__ = ["GrpcConnection", "GrpcServer"]
