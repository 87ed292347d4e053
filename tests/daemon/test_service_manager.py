"""`psrt pserver` and `psrt trainer` under a service manager: what they send to its socket."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.fake_manager import FakeManager
from tests.support.processes import Running, psrt
from tests.support.pserver import daemon, exchange, joined
from tests.support.small_job import BATCH, lines, write_files


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[FakeManager]:
    with FakeManager(tmp_path, watchdog_s=0.4) as found:
        yield found


def order(manager: FakeManager, *starts: str) -> None:
    """Fail unless the lines with these starts came in this order."""
    all_lines = manager.rest()
    at = 0
    for start in starts:
        rest = [number for number, line in enumerate(all_lines) if line.startswith(start)]
        later = [number for number in rest if number >= at]
        assert later, f"no {start} from line {at} on: {all_lines}"
        at = later[0] + 1


def test_a_pserver_reports_its_life(tmp_path: Path, manager: FakeManager) -> None:
    with daemon(tmp_path, **manager.variables) as pserver:
        assert manager.wait_for("STATUS=") == "STATUS=waits for trainers"
        client = joined(pserver.endpoint)
        exchange(client)
        status = manager.wait_for("STATUS=job job: round 1")
        manager.wait_for("WATCHDOG=1", after=len(manager.lines))
        code = pserver.end()
        client.close()

    order(manager, "READY=1", "STATUS=", "WATCHDOG=1", "STOPPING=1", "EXTEND_TIMEOUT_USEC=")
    assert code == 0
    assert status == "STATUS=job job: round 1, 0 rows, 1 trainers run"
    assert manager.lines.count("READY=1") == 1


def test_a_hangup_reads_the_configuration_again(tmp_path: Path, manager: FakeManager) -> None:
    config = tmp_path / "psrt.toml"
    config.write_text("[pserver]\n")
    with daemon(tmp_path, "--config", str(config), **manager.variables) as pserver:
        manager.wait_for("READY=1")
        config.write_text('[pserver]\nlog_level = "debug"\nwait_timeout_s = 7\n')
        pserver.process.send_signal(signal.SIGHUP)
        begun = len(manager.lines)
        manager.wait_for("READY=1", after=begun)
        assert pserver.end() == 0
        output = pserver.log.read_text()

    order(manager, "READY=1", "RELOADING=1", "MONOTONIC_USEC=", "READY=1", "STOPPING=1")
    assert "INFO pserver.log_level is 'debug' from now on" in output
    assert "WARNING pserver.wait_timeout_s stays 120.0" in output


def test_a_configuration_with_a_mistake_changes_nothing(
    tmp_path: Path, manager: FakeManager
) -> None:
    config = tmp_path / "psrt.toml"
    config.write_text("[pserver]\n")
    with daemon(tmp_path, "--config", str(config), **manager.variables) as pserver:
        manager.wait_for("READY=1")
        config.write_text('[pserver]\nlog_level = "loud"\n')
        pserver.process.send_signal(signal.SIGHUP)
        manager.wait_for("READY=1", after=len(manager.lines))
        assert pserver.end() == 0
        output = pserver.log.read_text()

    assert "ERROR the configuration stays as it is" in output
    assert "pserver.log_level is 'loud', expected one of debug" in output


def test_a_stopped_pserver_sends_no_heartbeat(tmp_path: Path, manager: FakeManager) -> None:
    with daemon(tmp_path, **manager.variables) as pserver:
        manager.wait_for("WATCHDOG=1")
        os.kill(pserver.process.pid, signal.SIGSTOP)
        manager.rest()
        with pytest.raises(TimeoutError):
            manager.receive(1.0)
        os.kill(pserver.process.pid, signal.SIGCONT)
        manager.wait_for("WATCHDOG=1", after=len(manager.lines))


def trainer(directory: Path, manager: FakeManager, epochs: int) -> AbstractContextManager[Running]:
    job = write_files(directory, [lines(60 * BATCH, seed=1)], epochs=epochs)
    return psrt(directory / "trainer.log", "trainer", "--local", str(job), **manager.variables)


def test_a_trainer_reports_its_training(tmp_path: Path, manager: FakeManager) -> None:
    with trainer(tmp_path, manager, epochs=2) as running:
        assert running.exit_code() == 0

    order(manager, "READY=1", "STATUS=epoch", "STOPPING=1")


def test_a_trainer_obeys_hangup_and_end(tmp_path: Path, manager: FakeManager) -> None:
    with trainer(tmp_path, manager, epochs=100_000) as running:
        manager.wait_for("READY=1")
        running.process.send_signal(signal.SIGHUP)
        manager.wait_for("RELOADING=1")
        manager.wait_for("READY=1", after=manager.lines.index("RELOADING=1"))
        manager.wait_for("STATUS=epoch")
        manager.wait_for("WATCHDOG=1", after=len(manager.lines))
        running.process.terminate()
        assert running.exit_code() == 143
        output = running.output

    order(manager, "READY=1", "RELOADING=1", "READY=1", "WATCHDOG=1", "STOPPING=1")
    assert "the configuration was read again: 0 changes" in output


def test_a_script_reports_that_it_runs(tmp_path: Path, manager: FakeManager) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('trains')\n")
    with psrt(tmp_path / "log", "trainer", str(script), **manager.variables) as running:
        assert running.exit_code() == 0

    order(manager, "READY=1", f"STATUS=runs {script}", "STOPPING=1")


def test_another_process_of_the_watchdog_sends_no_heartbeat(
    tmp_path: Path, manager: FakeManager
) -> None:
    with daemon(tmp_path, WATCHDOG_PID="1", **manager.variables) as pserver:
        manager.wait_for("READY=1")
        assert pserver.end() == 0

    assert "WATCHDOG=1" not in manager.rest()


def test_a_hangup_reads_the_files_of_the_host_again(tmp_path: Path, manager: FakeManager) -> None:
    folder = tmp_path / "psrt" / "conf.d"
    folder.mkdir(parents=True)
    (folder / "10.toml").write_text("[pserver]\nports_num = 2\n")
    with daemon(tmp_path, XDG_CONFIG_HOME=str(tmp_path), **manager.variables) as pserver:
        assert len(pserver.facts["data_endpoints"]) == 2
        manager.wait_for("READY=1")
        (folder / "20.toml").write_text('[pserver]\nlog_level = "warning"\nports_num = 3\n')
        pserver.process.send_signal(signal.SIGHUP)
        manager.wait_for("READY=1", after=len(manager.lines))
        assert pserver.end() == 0
        output = pserver.log.read_text()

    assert "WARNING pserver.ports_num stays 2" in output
    assert "stopping" not in output
