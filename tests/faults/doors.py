"""Doors of pservers: addresses of proxies that trainers use in place of the real ones.

The lab writes the doors into a JSON file, anew when a pserver has been started again. A client
reads them whenever it opens a connection.
"""

from __future__ import annotations

import json
from pathlib import Path

from psrt.core.errors import UnavailableError
from psrt.core.whole_file import write
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Connection


def write_doors(path: Path, doors: dict[str, str]) -> None:
    """Write the doors: the address of a proxy by each real address."""
    write(path, json.dumps(doors))


def through_doors(client: Client, path: str) -> Client:
    """Let `client` use the doors of a file for data; its endpoint is a door already."""
    dial = client.route.dial

    def dial_door(hello: pb.HelloReply | None, timeout_s: float) -> Connection:
        return dial(None if hello is None else _behind_doors(hello, path), timeout_s)

    client.route.dial = dial_door
    return client


def _behind_doors(hello: pb.HelloReply, path: str) -> pb.HelloReply:
    doors = json.loads(Path(path).read_text())
    real = [*hello.data_endpoints, *([hello.unix_path] if hello.unix_path else [])]
    if closed := [address for address in real if address not in doors]:
        raise UnavailableError(f"There is no door to {closed[0]} yet.")
    found = pb.HelloReply()
    found.CopyFrom(hello)
    found.data_endpoints[:] = [doors[each] for each in hello.data_endpoints]
    found.unix_path = doors.get(hello.unix_path, "")
    return found
