"""rpc: calls between trainers and pservers: frames, carriers, client and server.

Reading order, which is also import order:

    pb          generated messages of protos/psrt/v1
    wire        messages, frames and their pieces
    methods     the table of calls
    tls         encrypted connections
    grpc_library  gRPC, imported so that it speaks TLS 1.3 alone
    access      tokens, and who may make which call
    status      errors on the wire
    retry       retry policy
    serving     the contract between carriers and handlers
    traced_calls  spans of calls, at both ends
    hosts       host identity, endpoints, paths of Unix sockets
    busy_poll   polling for a message before sleeping
    host_shares  shares of one host in what all may use
    unfinished  limits of messages that have not arrived as a whole
    shm         payloads in shared memory
    stream      the carrier over TCP and Unix sockets
    grpc_       the carrier over gRPC
    dialing     new connections of a client
    pool        connections of a client
    error_text  error texts of a client
    connecting  the wait for a pserver that is not up yet
    pairs       the two pservers that may serve a part
    deposal     when a trainer gives up a pserver
    route       the destination of a client's calls
    recovering  a client's part in the recovery of its pserver
    client      a trainer's client of one pserver
    server      the server of one pserver

A pserver needs `Server`, `Message`, `Later` and `Peer`; a communicator needs `Client` and `Method`.
docs/reference/wire-format.md describes the format.
"""
