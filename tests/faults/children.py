"""Processes of a round: forked from a process that has loaded all modules and kernels.

`psrt pserver` starts in a tenth of the time, and is the command of users from its first line on. At
its end it writes what its tables hold, for the ledger.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np

from psrt.rpc import access
from tests.faults import clocks, hosts
from tests.support.forked import CONTEXT

TOKENS = "LAB_TOKENS"
"""The file of the token that a trainer proves, if pservers ask for one."""

_planted = ""
_PLANTS = contextlib.ExitStack()  # of this process, to its end


def plant(name: str) -> None:
    """Let processes that start from now on have a planted bug of the simulator; "" = none."""
    global _planted
    _planted = name


@dataclass
class Child:
    """A process of the round: `name` is its role and number, `log` its output."""

    name: str
    process: ForkServerProcess
    log: Path
    events: Connection | None = None
    was_killed: bool = False
    is_paused: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.exitcode is None

    def signal(self, number: int) -> None:
        """Send a signal; a process that has ended gets none."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.was_killed = self.was_killed or self.is_alive
        self.signal(signal.SIGKILL)

    @property
    def has_stopped(self) -> bool:
        """True while the process is stopped by a signal."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        return False


def start_pserver(
    name: str, arguments: list[str], variables: Mapping[str, str], log: Path, dump: Path
) -> Child:
    process = CONTEXT.Process(
        target=_pserver,
        args=(arguments, dict(variables), log, dump, _planted),
        name=name,
        daemon=True,
    )
    process.start()
    return Child(name, process, log)


def start_trainer(name: str, job: Any, variables: Mapping[str, str], log: Path) -> Child:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(
        target=_trainer, args=(job, dict(variables), log, sender, _planted), name=name, daemon=True
    )
    process.start()
    sender.close()
    return Child(name, process, log, receiver)


def _become(variables: dict[str, str], log: Path, planted: str) -> None:
    """Take the output file, the environment and the planted bug of this process."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=True)
    for name in [name for name in os.environ if name.startswith(("PSRT_", "PADDLE_"))]:
        del os.environ[name]
    os.environ.update(variables)
    if clocks.VARIABLE in variables:
        clocks.follow(variables[clocks.VARIABLE])
    if hosts.VARIABLE in variables:
        hosts.enter(variables[hosts.VARIABLE])
    tempfile.tempdir = None
    if planted:
        from tests.sim.mutations import MUTATIONS

        _PLANTS.enter_context(MUTATIONS[planted].planted())
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def _pserver(
    arguments: list[str], variables: dict[str, str], log: Path, dump: Path, planted: str
) -> None:
    _become(variables, log, planted)
    from psrt.cli.main import run
    from psrt.pserver.process import daemon
    from psrt.pserver.serving.service import PserverService

    class Recorded(PserverService):
        def stop(self) -> None:
            super().stop()
            _write_tables(self, dump)

    vars(daemon)["PserverService"] = Recorded
    with _as_exit_code():
        sys.exit(run(["pserver", *arguments]))


def _trainer(
    job: Any, variables: dict[str, str], log: Path, events: Connection, planted: str
) -> None:
    _become(variables, log, planted)
    from psrt.core import log as core_log
    from tests.faults.ledger_job import train

    core_log.configure(f"trainer {job.number}")
    if TOKENS in variables:
        access.assume_token_of(variables[TOKENS])
    train(job, lambda *event: events.send(event))


@contextlib.contextmanager
def _as_exit_code() -> Iterator[None]:
    """Leave without the clean-up of forked processes, as a process of its own does."""
    code: Any = 0
    try:
        yield
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _write_tables(service: Any, dump: Path) -> None:
    """Rows of `emb` by id, and blocks of dense parameters by name."""
    tables = service.tables
    if not len(tables):
        return
    ids, weights, _ = tables.sparse("emb").export(0, 1 << 20)
    dense = {}
    for table in tables.all():
        if table.spec.name != "emb":
            dense[f"{table.spec.parameter}@{table.spec.offset:09d}"] = table.read()[0].reshape(-1)
    unfinished = dump.with_suffix(".tmp.npz")
    np.savez(unfinished, ids=ids, weights=weights, **dense)
    unfinished.rename(dump)
