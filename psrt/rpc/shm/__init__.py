"""shm: files in reading order.

areas          Memory that two processes of one host map: one end of a connection writes it,
               the other reads
own_areas      What one end of a connection writes for the other: large payloads, laid out in
               shared memory
shared_memory  Payloads that lie in shared memory instead of travelling through the socket
"""

from __future__ import annotations

from psrt.rpc.shm.shared_memory import ANCILLARY_BYTES, Outgoing, SharedMemory

__all__ = ["ANCILLARY_BYTES", "Outgoing", "SharedMemory"]
