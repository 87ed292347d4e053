"""stream: files in reading order.

sockets        Frames over a connected socket: both ends of the stream carrier use this
stream         The stream carrier, client side: one connection, one call at a time
stream_server  The stream carrier, server side: a thread per listener, a thread per connection
"""

from __future__ import annotations

from psrt.rpc.stream.stream import connect_tcp, connect_unix
from psrt.rpc.stream.stream_server import MOST_CONNECTIONS, StreamServer

__all__ = ["MOST_CONNECTIONS", "StreamServer", "connect_tcp", "connect_unix"]
