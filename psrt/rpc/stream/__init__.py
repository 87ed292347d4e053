"""stream: the carrier over TCP and Unix sockets.

socket_options buffers and timeouts of a connected socket
sockets        whole messages over a connected socket, used by both sides
strangers      connections that have not made their first call
unix_peers     the user at the other end of a Unix socket
stream         client side: one connection, one call at a time
lobby          listeners, and connections that have sent nothing yet
stream_server  server side: a thread for all listeners, a thread per connection
"""

from psrt.rpc.stream.stream import connect_tcp, connect_unix
from psrt.rpc.stream.stream_server import MOST_CONNECTIONS, StreamServer

__all__ = ["MOST_CONNECTIONS", "StreamServer", "connect_tcp", "connect_unix"]
