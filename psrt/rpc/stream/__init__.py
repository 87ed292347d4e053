"""stream: the carrier over TCP and Unix sockets.

socket_options buffers and timeouts of a connected socket
sockets        whole messages over a connected socket, used by both sides
unfinished     limits of frames that have not arrived as a whole
unix_peers     the user at the other end of a Unix socket
stream         client side: one connection, one call at a time
stream_server  server side: a thread per listener, a thread per connection
"""

from psrt.rpc.stream.stream import connect_tcp, connect_unix
from psrt.rpc.stream.stream_server import MOST_CONNECTIONS, StreamServer
from psrt.rpc.stream.unfinished import UNFINISHED_BYTES

__all__ = ["MOST_CONNECTIONS", "UNFINISHED_BYTES", "StreamServer", "connect_tcp", "connect_unix"]
