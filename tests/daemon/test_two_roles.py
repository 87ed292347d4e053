"""The classic script: each copy is a pserver or a trainer, by its environment alone."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import psrt
from psrt.core.errors import ConfigError, ErrorCode, JobError, PsrtError
from psrt.partition.transpiler import DistributeTranspiler, PserverProgram
from psrt.trainer.training.connected import ConnectedExecutor
from tests.cluster.test_connected_executor import big_batches, model
from tests.support.live_pservers import free_port
from tests.support.processes import ROOT, Running, clean_environment

SCRIPT = ROOT / "examples" / "two_roles" / "two_roles.py"
LOSSES = re.compile(r"first steps [0-9.]+, of the last ([0-9.]+)")


@contextlib.contextmanager
def script(log: Path, **variables: str) -> Iterator[Running]:
    """A copy of the example; killed in the end if it still runs."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=log.parent,
            env=clean_environment() | variables,
        )
    try:
        yield Running(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def roles(ports: list[int], mode: str = "sync") -> list[dict[str, str]]:
    """The variables of each pserver, then of two trainers, as the example's header exports them."""
    endpoints = ",".join(f"127.0.0.1:{port}" for port in ports)
    shared = {
        "PADDLE_PSERVERS_IP_PORT_LIST": endpoints,
        "PADDLE_TRAINERS_NUM": "2",
        "MODE": mode,
        "OMP_NUM_THREADS": "1",
    }
    own = [
        {"TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1", "PADDLE_PORT": str(p)} for p in ports
    ]
    own += [{"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(t)} for t in range(2)]
    return [shared | variables for variables in own]


@pytest.mark.parametrize("mode", ["sync", pytest.param("geo", marks=pytest.mark.long)])
def test_one_script_is_two_pservers_and_two_trainers(tmp_path: Path, mode: str) -> None:
    ports = [free_port(), free_port()]
    with contextlib.ExitStack() as stack:
        # Trainers first: they wait for the ports.
        copies = [
            stack.enter_context(script(tmp_path / f"{number}.log", **variables))
            for number, variables in reversed(list(enumerate(roles(ports, mode))))
        ][::-1]

        codes = [copy.exit_code() for copy in copies]

    assert codes == [0, 0, 0, 0], [copy.output for copy in copies]
    for port, pserver in zip(ports, copies[:2], strict=True):
        assert f"psrt pserver ready on 127.0.0.1:{port}" in pserver.output
    for trainer in copies[2:]:
        found = LOSSES.search(trainer.output)
        assert found is not None, trainer.output
        assert float(found[1]) < 0.5, "knowing nothing costs ln 2 = 0.69"


def test_a_pserver_in_a_script_ends_in_order_by_a_signal(tmp_path: Path) -> None:
    (variables, *_) = roles([free_port()])
    with script(tmp_path / "pserver.log", **variables) as pserver:
        pserver.wait_for("ready on")
        pserver.process.send_signal(signal.SIGTERM)

        assert pserver.exit_code() == 0


# --- serve in this process ------------------------------------------------------------------------


def pserver_program(
    endpoint: str, trainers: int = 1
) -> tuple[DistributeTranspiler, PserverProgram]:
    transpiler = DistributeTranspiler()
    transpiler.transpile(model()[0], 0, endpoint, trainers)
    return transpiler, transpiler.get_pserver_program(endpoint)


def test_serve_on_another_thread_returns_when_all_trainers_have_completed() -> None:
    transpiler, program = pserver_program(f"127.0.0.1:{free_port()}")
    serving = threading.Thread(target=psrt.serve, args=(program,))
    serving.start()

    with ConnectedExecutor(transpiler.get_trainer_program()) as executor:
        executor.run(big_batches(1)[0])

    serving.join(30.0)
    assert not serving.is_alive()


def test_serve_refuses_trainers_of_another_program_before_any_of_its_own_came() -> None:
    transpiler, program = pserver_program(f"127.0.0.1:{free_port()}")
    other = DistributeTranspiler()
    other.transpile(model(psrt.optimizer.Adam())[0], 0, program.endpoint, 1)
    serving = threading.Thread(target=psrt.serve, args=(program,))
    serving.start()

    with pytest.raises(PsrtError, match="plan hash") as caught:
        ConnectedExecutor(other.get_trainer_program()).start()
    ConnectedExecutor(transpiler.get_trainer_program()).stop()

    serving.join(30.0)
    assert not serving.is_alive()
    assert caught.value.code is ErrorCode.JOB_MISMATCH


def test_serve_on_a_port_that_is_taken_says_which() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        _, program = pserver_program(f"127.0.0.1:{taken.getsockname()[1]}")

        with pytest.raises(JobError, match=program.endpoint) as caught:
            psrt.serve(program)

    assert caught.value.code is ErrorCode.STARTUP_FAILED


def test_serve_at_an_address_of_another_host_names_the_endpoint() -> None:
    _, program = pserver_program("192.0.2.1:6170")  # TEST-NET-1: nobody's

    with pytest.raises(ConfigError, match=r"192\.0\.2\.1 is no address of this host") as caught:
        psrt.serve(program)

    assert "POD_IP" in caught.value.hint


def test_serve_refuses_a_setting_that_does_not_exist() -> None:
    _, program = pserver_program("127.0.0.1:6170")

    with pytest.raises(ConfigError, match="port_num"):
        psrt.serve(program, port_num=2)
