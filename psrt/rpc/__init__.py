"""Calls between trainers and pservers: frames, carriers, client and server.

Reading order, which is also import order: pb (generated) · preamble · buffers · frames · pieces ·
placing · methods · status · retry · serving · hosts · busy_poll · areas · own_areas ·
shared_memory · sockets · stream · stream_server · grpc_carrier · aio_loop · grpc_calls ·
grpc_server · inproc · dialing · pool · stories · client · server. A pserver needs `Server`,
`Message`, `Later` and `Peer`; a communicator needs `Client` and `Method`; tests add `InprocServer`
and `Fault`. docs/reference/wire-format.md is the format in prose.
"""
