"""shm: large payloads in memory that both ends of a Unix-socket connection map.

segments       shared-memory segments: one end writes them, the other maps them read-only
shared_memory  frames whose payload is in a segment: preamble flags and descriptors
"""

from psrt.rpc.shm.shared_memory import ANCILLARY_BYTES, Outgoing, SegmentRefusedError, SharedMemory

__all__ = ["ANCILLARY_BYTES", "Outgoing", "SegmentRefusedError", "SharedMemory"]
