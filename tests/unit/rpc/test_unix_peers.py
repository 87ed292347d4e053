"""Unix sockets: the kernel names the user at the other end, and others are refused."""

from __future__ import annotations

import grp
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import AccessError, ConfigError
from psrt.rpc import pb
from psrt.rpc.hosts import UnixSocketPath
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.stream import connect_unix
from psrt.rpc.stream.unix_peers import check_unix_peer
from psrt.rpc.wire import Message

NOBODY = 65534
OTHER_GROUP = 54_321
WAIT_S = 10.0

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair(socket.AF_UNIX)
    with closing(near), closing(far):
        yield near, far


def test_a_process_of_this_user_is_admitted(pair: tuple[socket.socket, socket.socket]) -> None:
    check_unix_peer(pair[0], None)


CONNECT_AS = """
import os, socket, sys
path, user, *groups = sys.argv[1:]
os.setgroups([int(group) for group in groups])
os.setgid(int(user))
os.setuid(int(user))
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect(path)
    sock.recv(1)
"""


@pytest.fixture
def accepted() -> Iterator[Callable[[list[int]], socket.socket]]:
    """Accept a connection of user nobody, who is in some groups."""
    children = list[subprocess.Popen[bytes]]()
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "s"
        listener.bind(str(path))
        for place, mode in ((folder, 0o755), (path, 0o666)):
            os.chmod(place, mode)
        listener.listen()
        listener.settimeout(WAIT_S)

        def accept(groups: list[int]) -> socket.socket:
            who = map(str, (path, NOBODY, *groups))
            children.append(subprocess.Popen([sys.executable, "-c", CONNECT_AS, *who]))
            return listener.accept()[0]

        yield accept
        for child in children:
            assert child.wait(WAIT_S) == 0


@as_root
def test_another_user_is_refused_unless_it_is_in_the_group(
    accepted: Callable[[list[int]], socket.socket],
) -> None:
    for groups, group, is_admitted in (
        ([], None, False),
        ([], OTHER_GROUP, False),
        ([OTHER_GROUP], None, False),
        ([7, OTHER_GROUP, 9], OTHER_GROUP, True),
        ([], NOBODY, True),
    ):
        with accepted(groups) as sock:
            if is_admitted:
                check_unix_peer(sock, group)
            else:
                with pytest.raises(AccessError, match=f"of user {NOBODY} may not use"):
                    check_unix_peer(sock, group)


def echo(request: Message, peer: Peer) -> Message:
    return Message(pb.Header(), list(request.tensors))


def test_the_group_may_use_the_socket_and_others_may_not(tmp_path: Path) -> None:
    group = grp.getgrgid(os.getegid()).gr_name
    server = Server(echo, unix_dir=str(tmp_path / "run"), unix_group=group)
    server.start()
    try:
        connection = connect_unix(server.unix_path, WAIT_S)
        request = Message(pb.Header(protocol=1, method=Method.PULL), [np.arange(3)])
        assert connection.call(request, WAIT_S).tensors[0].tolist() == [0, 1, 2]
        connection.close()
        modes = [stat.S_IMODE(os.stat(p).st_mode) for p in (tmp_path / "run", server.unix_path)]
    finally:
        server.stop(0.0)

    assert modes == [0o750, 0o660]


def test_an_unknown_group_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no group 'no-such-group'"):
        UnixSocketPath(str(tmp_path), "s", "no-such-group")
