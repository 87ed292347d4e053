"""`psrt pserver` as a process: start, serve, signals, endings, a port that is taken."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import (
    CATALOGUE,
    DeadlineError,
    ErrorCode,
    JobError,
    UnavailableError,
    WireError,
)
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PUSH_DENSE
from tests.support.processes import DEADLINE_S
from tests.support.pserver import (
    CALL_TIMEOUT_S,
    daemon,
    exchange,
    joined,
    onlooker,
    start_daemon,
    status,
)


def test_it_serves_and_ends_by_itself_when_all_trainers_completed(tmp_path: Path) -> None:
    with daemon(tmp_path, is_forked=False) as pserver:  # by a start of Python, as users do
        client = joined(pserver.endpoint)
        values = exchange(client).copy()
        client.call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)
        client.close()
        exit_code = pserver.exit_code()
        output = pserver.log.read_text()

    np.testing.assert_array_equal(values, 0.5)
    assert exit_code == 0
    assert f"psrt pserver ready on {pserver.endpoint}" in output
    assert "stopping: all trainers completed" in output


@pytest.mark.parametrize(
    "mode",
    [specs.Async(), specs.Ssp(), specs.HalfAsync(), specs.Geo()],
    ids=lambda m: type(m).__name__,
)
def test_it_ends_by_itself_in_every_mode_that_pushes(
    tmp_path: Path, mode: specs.CommunicationMode
) -> None:
    with daemon(tmp_path, "--num-gradient-servers", "2") as pserver:
        clients = [joined(pserver.endpoint, trainer, trainers=2, mode=mode) for trainer in range(2)]
        for client in clients:
            header = pb.Header(push_key=client.next_push_key(), step=1)
            header.parts.add(kind=PUSH_DENSE, table="w")
            ones = [np.ones(4, np.float32)]
            client.call(Method.PUSH, header=header, tensors=ones, timeout_s=CALL_TIMEOUT_S)
        clients[0].call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)
        met = pb.Header(meet=pb.Meet(clock="trained", reached=1, awaited=1))
        slowest = clients[1].call(Method.MEET, header=met, timeout_s=CALL_TIMEOUT_S).header
        clients[1].call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)
        for client in clients:
            client.close()
        exit_code = pserver.exit_code()
        output = pserver.log.read_text()

    assert slowest.meet_reply.slowest == (1 << 64) - 1
    assert exit_code == 0
    assert "stopping: all trainers completed" in output


def test_a_trainer_of_a_job_with_another_number_of_trainers_is_refused(tmp_path: Path) -> None:
    with (
        daemon(tmp_path, "--num-gradient-servers", "2") as pserver,
        pytest.raises(WireError, match=r"a job of 1 trainers, .* num_gradient_servers = 2"),
    ):
        joined(pserver.endpoint)


def left_waiting(endpoint: str, policy: str) -> Client:
    """Trainer 0 of two, whose other trainer has closed its connections."""
    mode = specs.Ssp(on_trainer_loss=policy)
    waiting, dead = (joined(endpoint, trainer, trainers=2, mode=mode) for trainer in range(2))
    dead.close()
    return waiting


def test_a_wait_goes_on_without_a_trainer_that_has_left(tmp_path: Path) -> None:
    with (
        daemon(tmp_path, "--wait-timeout-s", "0.5") as pserver,
        closing(left_waiting(pserver.endpoint, "shrink")) as waiting,
    ):
        header = pb.Header(meet=pb.Meet(clock="step", reached=4, awaited=1))
        reply = waiting.call(Method.MEET, header=header, timeout_s=CALL_TIMEOUT_S)
        output = pserver.log.read_text()

    assert reply.header.meet_reply.slowest == (1 << 64) - 1
    assert "WARNING trainer 1 (gone, last call " in output


def test_with_wait_the_wait_for_a_trainer_that_has_left_ends_with_its_name(tmp_path: Path) -> None:
    with (
        daemon(tmp_path, "--wait-timeout-s", "0.5") as pserver,
        closing(left_waiting(pserver.endpoint, "wait")) as waiting,
    ):
        header = pb.Header(meet=pb.Meet(clock="step", reached=4, awaited=1))
        with pytest.raises(DeadlineError, match=r"trainer 1 \(gone, last call .* ago\) to reach 1"):
            waiting.call(Method.MEET, header=header, timeout_s=CALL_TIMEOUT_S)


def test_the_ready_file_names_every_door_and_goes_with_the_process(tmp_path: Path) -> None:
    with daemon(tmp_path, "--ports-num", "2") as pserver:
        facts = pserver.facts
        exit_code = pserver.end(signal.SIGTERM)

    assert facts["endpoint"].startswith("127.0.0.1:")
    assert len(facts["data_endpoints"]) == 2
    assert facts["unix_path"].endswith(".sock")
    assert facts["pid"] == pserver.process.pid
    assert exit_code == 0
    assert not (tmp_path / "ready.json").exists()
    assert not Path(facts["unix_path"]).exists()


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="a policy of Linux")
@pytest.mark.parametrize(
    ("policy", "number"), [("normal", "SCHED_OTHER"), ("batch", "SCHED_BATCH")]
)
def test_its_threads_are_scheduled_as_configured(tmp_path: Path, policy: str, number: str) -> None:
    with daemon(tmp_path, "--scheduling", policy) as pserver:
        client = joined(pserver.endpoint)
        exchange(client)
        threads = [int(name) for name in os.listdir(f"/proc/{pserver.process.pid}/task")]
        # numpy starts threads for BLAS, which a pserver does not use, before anybody is asked.
        first_and_last = pserver.process.pid, max(threads)
        policies = [os.sched_getscheduler(thread) for thread in first_and_last]
        client.close()

    assert policies == [getattr(os, number)] * 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_while_a_trainer_is_connected(
    tmp_path: Path, number: int
) -> None:
    with daemon(tmp_path) as pserver:
        client = joined(pserver.endpoint)
        exchange(client)

        exit_code = pserver.end(number)
        client.close()
        output = pserver.log.read_text()

    assert exit_code == 0
    assert "stopping: a signal" in output
    assert "Traceback" not in output


def test_a_stopped_pserver_ends_with_the_exit_code_that_its_supervisor_needs(
    tmp_path: Path,
) -> None:
    with daemon(tmp_path, "--stopped-exit-code", "143") as pserver:
        assert pserver.end(signal.SIGTERM) == 143


def test_with_stay_it_goes_on_after_all_trainers_completed(tmp_path: Path) -> None:
    with daemon(tmp_path, "--stay") as pserver:
        client = joined(pserver.endpoint)
        client.call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)

        status = json.loads(client.call(Method.STATUS, timeout_s=CALL_TIMEOUT_S).header.status_json)
        client.close()
        exit_code = pserver.end()

    assert status["trainers"][0]["state"] == "completed"
    assert exit_code == 0


def test_an_aborted_job_ends_it_with_the_exit_code_of_the_error(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        client = joined(pserver.endpoint, policy="abort")
        hello = pb.Hello(
            job_id="job", plan_hash="plan", trainers=1, mode=specs.to_json(specs.Sync("abort"))
        )
        restarted = Client(pserver.endpoint, 0, 99, "stream", hello)
        restarted.connect(CALL_TIMEOUT_S)
        with pytest.raises(JobError, match="came back as a new process"):
            restarted.attend(CALL_TIMEOUT_S)
        for each in (client, restarted):
            each.close()

        exit_code = pserver.end(signal.SIGTERM)
        output = pserver.log.read_text()

    assert exit_code == CATALOGUE[ErrorCode.TRAINER_LOST].exit_code
    assert "error: trainer 0 came back as a new process" in output


def test_a_port_that_is_taken_is_named_with_what_to_do(tmp_path: Path) -> None:
    log = tmp_path / "pserver.log"
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]

        exit_code = start_daemon(log, "--port", str(port)).wait(DEADLINE_S)
        output = log.read_text()

    assert exit_code == CATALOGUE[ErrorCode.STARTUP_FAILED].exit_code
    assert f"could not listen on 127.0.0.1:{port}" in output
    assert "--port 0" in output
    assert "Traceback" not in output


def test_one_connection_over_the_limit_is_refused_and_the_pserver_serves_on(tmp_path: Path) -> None:
    with daemon(tmp_path, "--max-connections", "1", "--stay") as pserver:
        first, second = (onlooker(pserver.endpoint) for _ in range(2))
        with closing(first), closing(second):
            served = [status(first)]
            # At its deadline a client tells of its last attempt, which may not have got so far.
            with pytest.raises(UnavailableError):
                second.call(Method.STATUS, timeout_s=0.2)
            served.append(status(first))
        pserver.end()
        log = pserver.log.read_text()

    assert len(served) == 2
    assert "has 1 connections" in log


def test_listening_beyond_loopback_is_logged_as_unprotected(tmp_path: Path) -> None:
    with daemon(tmp_path, "--host", "0.0.0.0", "--insecure") as pserver:
        pserver.end()
        output = pserver.log.read_text()

    assert "listening on 0.0.0.0: traffic is not encrypted, and anyone may call" in output
