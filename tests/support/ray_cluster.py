"""A Ray cluster of two nodes in a network of its own: daemons of Ray listen on every address."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NODES = ("127.0.0.1", "127.0.0.2")
CORES = 4
_CLONE_NEWNET = 0x40000000
_OBJECTS_BYTES = 100 << 20
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Network:
    """A network namespace with a loopback interface alone, and the address of the cluster in it."""

    descriptor: int
    address: str = ""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread, and the threads and processes that it starts, live in it meanwhile."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        assert _libc.setns(self.descriptor, _CLONE_NEWNET) == 0
        try:
            yield
        finally:
            assert _libc.setns(before, _CLONE_NEWNET) == 0
            os.close(before)


@contextmanager
def ray_cluster(directory: Path) -> Iterator[Network]:
    """Two nodes with `CORES` cores each; skips the test without Ray, root or `ip`."""
    pytest.importorskip("ray", reason="needs Ray")
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip for a network of its own")
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_TMPDIR=str(directory))
    network = new_network()
    with network.entered():
        cluster = _cluster()
    try:
        yield Network(network.descriptor, cluster.address)
    finally:
        with network.entered():
            cluster.shutdown()
        os.close(network.descriptor)


def _cluster() -> Any:
    from ray.cluster_utils import Cluster

    common = {"num_cpus": CORES, "object_store_memory": _OBJECTS_BYTES}
    head = common | {"include_dashboard": False, "node_ip_address": NODES[0]}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(**common, node_ip_address=NODES[1])
    return cluster


def new_network() -> Network:
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    assert _libc.unshare(_CLONE_NEWNET) == 0
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return Network(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
    finally:
        assert _libc.setns(before, _CLONE_NEWNET) == 0
        os.close(before)
