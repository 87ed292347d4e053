"""Stands in for `psrt` in launcher tests: same arguments, behaviour from `behaviour.json`.

The file lies beside the job file, or beside the ready files where there is no job, and maps
`trainer.1` to a behaviour below. Nobody sleeps: a pserver serves until every trainer has closed its
connection, others wait for a signal.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from pathlib import Path


def main() -> int:
    arguments = _parse(sys.argv[1:])
    job = Path(arguments.config or arguments.job or arguments.ready_file)
    own = job.parent / "behaviour.json"  # one of a script on another host has that which was sent
    script = json.loads((own if own.exists() else Path(own.name)).read_text())
    index = arguments.trainer_id or 0
    if arguments.role == "pserver":
        index = int(Path(arguments.ready_file).name.split(".")[1])  # of pserver.1.ready.json
    behaviour = script.get(f"{arguments.role}.{index}", "serve")
    role = Pserver(arguments, script) if arguments.role == "pserver" else Trainer(arguments, script)
    return int(getattr(role, behaviour)() or 0)


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("role")
    parser.add_argument("job", nargs="?")
    for flag in (
        "config",
        "host",
        "port",
        "ready-file",
        "endpoints",
        "carrier",
        "report",
        "curves",
        "save",
        "run",
    ):
        parser.add_argument(f"--{flag}")
    for flag in ("num-gradient-servers", "trainers", "trainer-id", "cpu-threads", "cpu-num"):
        parser.add_argument(f"--{flag}", type=int)
    return parser.parse_intermixed_args(argv)


class Pserver:
    def __init__(self, arguments: argparse.Namespace, script: dict[str, object]) -> None:
        self.ready_file = Path(arguments.ready_file)
        self.trainers = int(str(script["trainers"]))
        self.listener = socket.create_server((arguments.host, int(arguments.port)))

    def serve(self) -> None:
        self._ready()
        self._serve_trainers()

    def outlive(self) -> None:
        """Serve two groups of trainers, one after the other."""
        self._ready()
        self._serve_trainers()
        self._serve_trainers()

    def _serve_trainers(self) -> None:
        connections = [self.listener.accept()[0] for _ in range(self.trainers)]
        for connection in connections:
            connection.recv(1)

    def stay(self) -> None:
        self._ready()
        signal.pause()

    def crash(self) -> int:
        print("no such device", file=sys.stderr)
        return 71

    def silent(self) -> None:
        signal.pause()

    def die(self) -> None:
        self._ready()
        self.listener.accept()
        os.kill(os.getpid(), signal.SIGKILL)

    def _ready(self) -> None:
        endpoint = "{}:{}".format(*self.listener.getsockname())
        unfinished = self.ready_file.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"endpoint": endpoint}))
        unfinished.rename(self.ready_file)


class Trainer:
    def __init__(self, arguments: argparse.Namespace, script: dict[str, object]) -> None:
        self.arguments = arguments
        self.script = script
        self.index = arguments.trainer_id
        hosts = [endpoint.split(":") for endpoint in arguments.endpoints.split(",")]
        self.connections = [socket.create_connection((host, int(port))) for host, port in hosts]

    def serve(self) -> None:
        """Succeed."""
        print(f"trainer {self.index} trained")
        print(f"trainer {self.index} logs", file=sys.stderr)
        report = {"steps": 10, "examples": 100 * (self.index + 1), "examples_per_s": 50.0}
        report |= {"loss": float(self.index), "auc": None}
        self._report(report)

    def tell(self) -> None:
        """Succeed, with the report telling what this process was given."""
        names = ("OMP_NUM_THREADS", "PSRT_COMMUNICATION_MODE", "PSRT_DATA_EPOCHS")
        given = {name: os.environ.get(name) for name in names}
        here = {"directory": os.getcwd(), "files": sorted(os.listdir())}
        self._report({"argv": sys.argv[1:], **given, **here})

    def _report(self, report: dict[str, object]) -> None:
        Path(self.arguments.report).write_text(json.dumps(report, indent=2) + "\n")

    def fail(self) -> int:
        for number in range(30):
            print(f"line {number}", file=sys.stderr)
        return 60

    def fail_once(self) -> int:
        """Fail, and succeed when started again."""
        begun = Path(self.arguments.job).with_name("begun")
        if begun.exists():
            self.serve()
            return 0
        begun.touch()
        return 1

    def wait(self) -> None:
        signal.pause()

    def stubborn(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.interrupt()
        signal.pause()

    def interrupt(self) -> None:
        os.kill(int(str(self.script["launcher"])), signal.SIGINT)
        signal.pause()

    def orphan(self) -> None:
        """Lose the process that has started this one; succeed when started again."""
        begun = Path(self.arguments.job).with_name("begun")
        if begun.exists():
            self.serve()
            return
        begun.touch()
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()

    def hold(self) -> None:
        """Connect to the test, which sees the connection close when this process ends."""
        with socket.create_connection(("127.0.0.1", int(str(self.script["port"])))):
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
