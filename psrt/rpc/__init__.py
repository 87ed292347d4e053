"""Calls between trainers and pservers: frames, carriers, client and server.

Reading order, which is also import order: pb (generated) · wire (frames and their pieces) ·
methods · status · retry · serving · hosts · busy_poll · shm (shared memory) · stream and grpc_
(carriers) · inproc · dialing · pool · error_text · client · server. A pserver needs `Server`,
`Message`, `Later` and `Peer`; a communicator needs `Client` and `Method`; tests add `InprocServer`
and `Fault`. docs/reference/wire-format.md is the format in prose.
"""
