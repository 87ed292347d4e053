"""The user at the other end of a Unix socket, as the kernel reports it."""

from __future__ import annotations

import os
import socket
import struct

from psrt.core.errors import AccessError

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_SO_PEERGROUPS = 59  # asm-generic/socket.h; Python has no name for it
_MOST_GROUPS = 256  # Python's limit; of a user in more groups, none is found
_GID_BYTES = 4
_ROOT = 0


def check_unix_peer(sock: socket.socket, group: int | None) -> None:
    """Raise `AccessError` unless the peer is this user, root, or in `group`."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(raw)
    if uid in (os.geteuid(), _ROOT) or (group is not None and group in {gid, *_groups(sock)}):
        return
    raise AccessError(
        f"Process {pid} of user {uid} may not use this Unix socket.",
        hint="Run it as the user of the pserver, or in its unix_group; or set unix_dir = 'off'.",
    )


def _groups(sock: socket.socket) -> list[int]:
    """Supplementary groups of the peer."""
    try:
        raw = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_GROUPS * _GID_BYTES)
    except OSError:
        return []
    return list(struct.unpack(f"{len(raw) // _GID_BYTES}I", raw))
