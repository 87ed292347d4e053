"""Real processes that die, start late, or get calls from strangers, and their messages."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import CATALOGUE, ErrorCode, UnavailableError
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.wire.preamble import MAX_FRAME_BYTES, preamble
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, child_of, psrt
from tests.support.pserver import (
    DaemonProcess,
    daemon,
    exchange,
    joined,
    onlooker,
    start_daemon,
    status,
)
from tests.support.small_job import BATCH, TABLE, TABLE_ROWS, lines, write_files

CARRIERS: tuple[Carrier, ...] = ("stream", "grpc")
ENDLESS = 100_000
IMPATIENT = RetryPolicy(initial_s=0.001, max_s=0.01, budget_s=0.5)
HTTP = b"GET / HTTP/1.1\r\nHost: psrt\r\n\r\n"
GARBAGE = {
    "http": HTTP,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    "noise": np.random.default_rng(1).bytes(4096),
    "a frame that never comes": preamble(100) + b"too short",
    "a frame over the limit": preamble(MAX_FRAME_BYTES + 1),
    "a frame of noise": preamble(512) + np.random.default_rng(2).bytes(512),
    "nothing": b"",
}


def exit_code(code: ErrorCode) -> int:
    return CATALOGUE[code].exit_code


# --- a process of a launch is killed ------------------------------------------------------------


@contextlib.contextmanager
def launched(directory: Path, mode: str, pservers: int, trainers: int) -> Iterator[Running]:
    """A launch that trains, and would for hours; its logs are in `directory`/logs."""
    files = [lines(BATCH * 4, seed=n) for n in range(trainers)]
    job = write_files(directory, files, mode, epochs=ENDLESS)
    counts = "--pservers", str(pservers), "--trainers", str(trainers)
    logs = "--log-dir", str(directory / "logs"), "--grace-s", str(DEADLINE_S)
    with psrt(directory / "launch.log", "launch", str(job), *counts, *logs) as launch:
        launch.wait_for("\nepoch ")
        yield launch


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.long)])
def test_a_killed_pserver_ends_the_launch_and_is_named_with_its_last_lines(
    tmp_path: Path, mode: str
) -> None:
    with launched(tmp_path, mode, pservers=2, trainers=1) as launch:
        facts = json.loads((tmp_path / "logs" / "pserver.1.ready.json").read_text())
        endpoint, pid = facts["endpoint"], facts["pid"]

        os.kill(pid, signal.SIGKILL)
        code = launch.exit_code()

    assert code == exit_code(ErrorCode.CHILD_FAILED)
    assert f"error: pserver.1 ({endpoint}, pid {pid}) was killed by SIGKILL" in launch.output
    assert f"    psrt pserver ready on {endpoint}\n" in launch.output
    assert "killing" not in launch.output, "nobody had to be killed after the grace"
    trainer = (tmp_path / "logs" / "trainer.0.log").read_text()
    assert f"to pserver {endpoint}" in trainer
    assert "Traceback" not in trainer


def test_a_killed_trainer_ends_the_launch_and_is_named_with_its_last_lines(tmp_path: Path) -> None:
    with launched(tmp_path, "sync", pservers=1, trainers=2) as launch:
        pid = child_of(launch.process.pid, "trainer.1")

        os.kill(pid, signal.SIGKILL)
        code = launch.exit_code()

    assert code == exit_code(ErrorCode.CHILD_FAILED)
    assert f"error: trainer.1 (pid {pid}) was killed by SIGKILL" in launch.output
    log = tmp_path / "logs" / "trainer.1.log"
    assert f"last lines of {log}:\n" in launch.output
    assert f"    {log.read_text().splitlines()[-1]}\n" in launch.output
    assert "stopping pserver.0, trainer.0" in launch.output
    assert "killing" not in launch.output
    assert "Traceback" not in launch.output


# --- a pserver is started again -----------------------------------------------------------------


def test_no_trainer_joins_a_pserver_that_was_started_again_among_trained_ones(
    tmp_path: Path,
) -> None:
    job = write_files(tmp_path, [lines(BATCH * 4, seed=1)], "async", epochs=ENDLESS)
    places = [tmp_path / "kept", tmp_path / "killed"]
    for place in places:
        place.mkdir()
    with daemon(places[0]) as kept, daemon(places[1]) as killed:
        given = "--endpoints", f"{kept.endpoint},{killed.endpoint}", "--save", str(tmp_path / "m")
        with psrt(tmp_path / "first.log", "trainer", *given, str(job)) as first:
            first.wait_for("\nepoch ")
            killed.process.kill()
            killed.process.wait()
            port = killed.endpoint.rpartition(":")[2]
            empty = start_daemon(tmp_path / "empty.log", "--port", port)
            try:
                first_code = first.exit_code()
                with psrt(tmp_path / "second.log", "trainer", *given, str(job)) as second:
                    second_code = second.exit_code()
            finally:
                empty.kill()
                empty.wait()

    assert first_code == second_code == exit_code(ErrorCode.CHILD_FAILED)
    assert f"found another process at {killed.endpoint} than this job began with" in second.output
    assert "Traceback" not in second.output
    assert not (tmp_path / "m").exists()


# --- a pserver is asked to end ------------------------------------------------------------------


def test_sigterm_ends_a_pserver_in_order_and_every_trainer_hears_its_name(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver, ThreadPoolExecutor(2) as threads:
        endpoint = pserver.endpoint
        idle = joined(endpoint, 2, trainers=3, retry=IMPATIENT)
        waiting = [
            joined(endpoint, 0, trainers=3, carrier="stream"),
            joined(endpoint, 1, trainers=3, carrier="grpc"),
        ]
        rounds = [threads.submit(exchange, client) for client in waiting]
        eventually(lambda: waiting_trainers(idle) == [0, 1], "both pushes in the round", DEADLINE_S)

        code = pserver.end(signal.SIGTERM)

        failures = [round.exception(DEADLINE_S) for round in rounds]
        with pytest.raises(UnavailableError, match=endpoint):
            exchange(idle)
        for client in (idle, *waiting):
            client.close()
        output = pserver.log.read_text()
    assert code == 0
    assert "Traceback" not in output
    for failure in failures:
        assert isinstance(failure, UnavailableError)
        assert failure.code is ErrorCode.STOPPING
        assert f"EXCHANGE of round 0 (w) to pserver {endpoint} failed" in failure.message


def test_a_trainer_whose_pserver_is_asked_to_end_in_mid_round_says_which(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(BATCH, seed=n) for n in range(2)])
    with daemon(tmp_path) as pserver:
        where = "--endpoints", pserver.endpoint, "--trainers", "2"
        with psrt(tmp_path / "trainer.log", "trainer", *where, str(job)) as trainer:
            looker = onlooker(pserver.endpoint)
            eventually(lambda: waiting_trainers(looker) == [0], "a half-full round", DEADLINE_S)
            looker.close()

            pserver_code = pserver.end(signal.SIGTERM)
            trainer_code = trainer.exit_code()

    assert pserver_code == 0
    assert trainer_code == exit_code(ErrorCode.STOPPING)
    assert f"to pserver {pserver.endpoint} failed: the pserver is shutting down" in trainer.output
    assert "Traceback" not in trainer.output


def waiting_trainers(client: Client) -> list[int]:
    return list(status(client)["waiting"])


# --- starting -----------------------------------------------------------------------------------


def test_a_trainer_that_is_started_first_waits_for_its_pserver_and_says_so(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(BATCH * 4, seed=1)])
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # nobody else may have it, and nobody listens
        port = holder.getsockname()[1]
        endpoint = f"127.0.0.1:{port}"
        with psrt(
            tmp_path / "trainer.log", "trainer", "--endpoints", endpoint, str(job)
        ) as trainer:
            trainer.wait_for(f"waiting for pserver {endpoint}")
            holder.close()
            pserver = start_daemon(tmp_path / "pserver.log", "--port", str(port))
            try:
                codes = trainer.exit_code(), pserver.wait(DEADLINE_S)
            finally:
                pserver.kill()
                pserver.wait()

    assert codes == (0, 0)
    assert "test  1,000 examples" in trainer.output


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A pserver that must survive every test that uses it."""
    with daemon(tmp_path_factory.mktemp("serving"), "--ports-num", "2", "--stay") as pserver:
        yield pserver
        assert pserver.end(signal.SIGTERM) == 0
        assert "Traceback" not in pserver.log.read_text()


def test_a_second_pserver_on_the_same_port_is_refused_and_the_first_serves_on(
    serving: DaemonProcess, tmp_path: Path
) -> None:
    port = serving.endpoint.rpartition(":")[2]

    with psrt(tmp_path / "second.log", "pserver", "--port", port) as second:
        code = second.exit_code()

    assert code == exit_code(ErrorCode.STARTUP_FAILED)
    assert f"error: the pserver could not listen on 127.0.0.1:{port}" in second.output
    assert f"what you can do: Stop what uses port {port}" in second.output
    assert "Traceback" not in second.output
    assert_serves(serving)


# --- strangers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("greeting", GARBAGE.values(), ids=list(GARBAGE))
def test_a_stranger_at_any_door_leaves_the_pserver_serving(
    serving: DaemonProcess, greeting: bytes
) -> None:
    for door in (serving.endpoint, *serving.facts["data_endpoints"]):
        host, _, port = door.rpartition(":")
        with socket.create_connection((host, int(port)), DEADLINE_S) as stranger:
            say(stranger, greeting)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(serving.facts["unix_path"])
        say(stranger, greeting)

    assert_serves(serving)


def say(sock: socket.socket, greeting: bytes) -> None:
    """Send everything, then hang up at once: the answer, if any, is not of interest."""
    with contextlib.suppress(ConnectionError):
        sock.sendall(greeting)
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(DEADLINE_S)
        while sock.recv(4096):
            pass


def assert_serves(pserver: DaemonProcess) -> None:
    """On every carrier a STATUS call is answered."""
    assert pserver.process.poll() is None
    for carrier in CARRIERS:
        client = onlooker(pserver.endpoint, carrier)
        assert status(client)["pid"] == pserver.process.pid
        client.close()


# --- unequal data -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.long)])
def test_trainers_with_unequal_files_end_well_in_a_launch(tmp_path: Path, mode: str) -> None:
    rows = (5 * BATCH, 60 * BATCH)
    job = write_files(tmp_path, [lines(n, seed=n) for n in rows], mode)
    outputs = "--log-dir", str(tmp_path / "logs"), "--report", str(tmp_path / "report.json")
    counts = "--pservers", "1", "--trainers", "2", "--save", str(tmp_path / "model")

    with psrt(tmp_path / "launch.log", "launch", str(job), *counts, *outputs) as launch:
        code = launch.exit_code()

    assert code == 0, launch.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert [trainer["examples"] for trainer in report["trainers"]] == list(rows)
    assert [process["exit_code"] for process in report["processes"]] == [0, 0, 0]
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["rows"] == {TABLE: TABLE_ROWS}
