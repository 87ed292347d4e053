"""grpc_: the carrier over gRPC, and the control endpoint of every pserver.

grpc_carrier   client side: one channel; unary calls up to 4 MiB, streams above
grpc_presence  client side: a call that lasts as long as the process
aio_loop       the asyncio loop that all gRPC servers of a process share
call_limits    limits of calls, of all and of one host
grpc_calls     the RPCs: bytes in, handler on a pool, bytes out
grpc_server    server side: one port with psrt.v1.Pserver and grpc.health.v1
"""

from psrt.rpc.grpc_.grpc_carrier import GrpcConnection
from psrt.rpc.grpc_.grpc_presence import GrpcPresence
from psrt.rpc.grpc_.grpc_server import GrpcServer

__all__ = ["GrpcConnection", "GrpcPresence", "GrpcServer"]
