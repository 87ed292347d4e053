"""The pservers of an attempt: processes behind proxies, their addresses and their ends."""

from __future__ import annotations

import json
import re
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from psrt.core import whole_file
from psrt.core.errors import CATALOGUE, ErrorCode, PsrtError
from psrt.rpc import access, pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.faults import clocks
from tests.faults.children import TOKENS, Child, start_pserver
from tests.faults.disks import CutsDisk
from tests.faults.doors import write_doors
from tests.faults.drawing import WAIT_S, FaultRound
from tests.faults.hosts import HUB, VARIABLE, Hosts
from tests.faults.limits import READY_S, Broken, check_in_time
from tests.faults.proxy import FaultProxy, Gate

TOKEN_S = 100 * 86_400
"""Days for which tokens of a round are good: more than any clock is moved by."""

_END = re.compile(r"^  ([A-Z_]+) \(exit (\d+)\)", re.M)


@dataclass
class Pserver:
    """A pserver: its present process, its place behind a gate, and its real addresses.

    It `is_anew` if its process found nothing to recover.
    """

    number: int
    proxy: FaultProxy
    directory: Path
    child: Child | None = None
    endpoint: str = ""
    starts: int = 0
    is_anew: bool = False


class Pservers:
    """Starts the pservers of attempt `number`; those that failpoints kill are added to `struck`."""

    def __init__(
        self,
        round: FaultRound,
        number: int,
        place: Path,
        disk: CutsDisk,
        resume: str,
        struck: list[str],
    ) -> None:
        self._round, self._number, self._place = round, number, place
        self._disk, self._resume, self._struck = disk, resume, struck
        self._doors: dict[str, str] = {}
        self.hosts = Hosts(round.processes(number)) if round.has_hosts else None
        address = HUB if round.has_hosts else "127.0.0.1"
        self.dumps: dict[int, Path] = {}
        self.all = [
            Pserver(i, FaultProxy(self._gate(i), address), self._place / f"pserver.{i}")
            for i in range(round.pservers[number])
        ]

    def _gate(self, number: int) -> Gate:
        faults = [f for n, f in self._round.links if n == number] if self._number == 0 else []
        return Gate(faults)

    def resume_flags(self) -> list[str]:
        """The flags of an attempt that goes on from a cut."""
        return ["--resume", self._resume] if self._resume else []

    def start(self, pserver: Pserver, *flags: str) -> Child:
        """Start the process of a pserver."""
        log = pserver.directory / f"{pserver.starts}.log"
        pserver.starts += 1
        ready = self._ready(pserver)
        flags += ("--ready-file", str(ready), "--wait-timeout-s", str(WAIT_S))
        flags += ("--unix-dir", "off") if self._round.carrier != "unix" else ()
        flags += ("--token-file", token_of(self._place)) if self._round.moves_clocks else ()
        if self.hosts is not None:
            address = self.hosts.address_of(f"pserver {pserver.number}")
            flags += ("--host", address, "--insecure")
        if self._round.makes_cuts:
            flags += ("--checkpoint-dir", str(self._disk.path), "--checkpoint-keep", "50")
            flags += ("--checkpoint-every-steps", str(self._round.cut_every))
            flags += ("--checkpoint-timeout-s", str(WAIT_S))
        dump = pserver.directory / f"{pserver.starts}.npz"
        self.dumps[pserver.number] = dump
        name = f"pserver {pserver.number}"
        pserver.child = start_pserver(name, list(flags), self._variables(pserver), log, dump)
        return pserver.child

    def _ready(self, pserver: Pserver) -> Path:
        return pserver.directory / f"{pserver.starts}.ready"

    def _variables(self, pserver: Pserver) -> dict[str, str]:
        points = dict(self._round.failpoints).get(pserver.number, "") if self._number == 0 else ""
        points = self._round.restore if self._number == 1 and pserver.number == 0 else points
        points = "" if pserver.starts > 1 else points
        return self.variables_of(f"pserver {pserver.number}") | {"PSRT_FAILPOINT": points}

    def variables_of(self, name: str) -> dict[str, str]:
        """Environment of a process of the round: its files, its clock and its token."""
        variables = {"TMPDIR": str(self._place.parent / "tmp")}
        if self._round.moves_clocks:
            variables |= {clocks.VARIABLE: str(self.clock_of(name)), TOKENS: token_of(self._place)}
        if self.hosts is not None:
            variables |= {VARIABLE: self.hosts.namespace_of(name)}
        return variables

    def clock_of(self, name: str) -> Path:
        """The file of the wall clock of a process and its successors, made when it is asked for."""
        path = self._place / f"{name}.clock"
        if not path.exists():
            clocks.move(path, 0)
        return path

    def open_doors(self, pserver: Pserver) -> None:
        """Wait until a pserver is ready, and make a door for each of its data addresses."""
        ready, child = self._ready(pserver), pserver.child
        deadline = time.monotonic() + READY_S
        assert child is not None
        while not ready.exists():
            if not child.is_alive:
                raise Broken(f"{child.name} ended before it was ready: {child.process.exitcode}")
            check_in_time(f"{child.name}, which is not ready", deadline, [child])
            wait([child.process.sentinel], 0.02)
        facts = json.loads(ready.read_text())
        pserver.endpoint = facts["endpoint"]
        for real in facts["data_endpoints"]:
            self._doors[real] = pserver.proxy.tcp_door(lambda real=real: real)
        if facts["unix_path"]:
            path = self._place.parent / "tmp" / f"door-{self._number}-{pserver.number}.sock"
            path.unlink(missing_ok=True)
            self._doors[facts["unix_path"]] = pserver.proxy.unix_door(facts["unix_path"], path)
        write_doors(self._place / "doors.json", self._doors)

    @staticmethod
    def found_nothing(pserver: Pserver) -> bool:
        """True if the process of a pserver was to recover, and there was nothing."""
        log = pserver.directory / f"{pserver.starts - 1}.log"
        return "nothing to recover" in log.read_text()

    @staticmethod
    def waits_for_newcomers(pserver: Pserver) -> bool:
        """True for a pserver that rightly waits: no trainer of its job runs."""
        client = Client(pserver.endpoint, 0, 1, "grpc", pb.Hello())
        try:
            reply = client.call(Method.STATUS, timeout_s=2.0)
        except PsrtError:
            return False
        finally:
            client.close()
        states = [each["state"] for each in json.loads(reply.header.status_json)["trainers"]]
        return "running" not in states

    def end_of(self, pserver: Pserver) -> str:
        """The end of a pserver's process, as its log and its exit code report it."""
        child = pserver.child
        assert child is not None
        code = child.process.exitcode
        has_killing_point = "=kill" in self._variables(pserver)["PSRT_FAILPOINT"]
        if code == -signal.SIGKILL and (child.was_killed or has_killing_point):
            if not child.was_killed:
                self._struck.append(f"{child.name} was killed by its failpoint")
            child.was_killed = True
            return "killed"
        found = _END.findall((pserver.directory / f"{pserver.starts - 1}.log").read_text())
        end = found[-1] if found else ("", "0")
        if code != int(end[1]) or (end[0] and CATALOGUE[ErrorCode[end[0]]].exit_code != code):
            raise Broken(f"{child.name} ended with code {code} and the error {end[0] or 'none'}")
        if end[0] == "INTERNAL":
            raise Broken(f"{child.name} ended with INTERNAL")
        return end[0] or "completed"


def token_of(place: Path) -> str:
    """The file of the token of an attempt, which the lab proves, too."""
    path = place / "tokens.toml"
    if not path.exists():
        token = access.Token("lab", access.new_key(), "admin", expires_s=time.time() + TOKEN_S)
        whole_file.write(path, access.text_of(token))
        path.chmod(0o600)
        access.assume_token_of(str(path))
    return str(path)


def ask_for_cut(pserver: Pserver) -> int:
    """Ask for a cut, as `psrt checkpoint save` does; returns its number."""
    client = Client(pserver.endpoint, 0, 1, "stream", pb.Hello())
    try:
        reply = client.call(Method.CHECKPOINT, timeout_s=2 * WAIT_S)
        return int(reply.header.cut.number)
    finally:
        client.close()
