"""A runner over pipes: what it starts, and the end of a launcher that is silent or gone."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.launch.outputs import LineSplitter
from psrt.launch.runners.messages import Message, message_in, packed
from psrt.launch.runners.runner import Runner
from psrt.launch.runners.uplink import Uplink

WAITS = (sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()")
FAILS = (sys.executable, "-c", "import sys; print('lost', file=sys.stderr); sys.exit(7)")


class HurriedClock:
    """Each look at it takes a minute."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now(self) -> float:
        self._now_s += 60.0
        return self._now_s


class FrozenClock:
    def now(self) -> float:
        return 0.0


class Launcher:
    """Both ends of the pipes of one runner, which runs in this thread."""

    def __init__(self) -> None:
        self.runner_reads, self.writes = os.pipe()
        self.reads, self.runner_writes = os.pipe()
        os.set_blocking(self.reads, False)
        self.uplink = Uplink(self.runner_reads, self.runner_writes)

    def send(self, kind: str, **fields: object) -> None:
        os.write(self.writes, packed(kind, **fields))

    def start(self, child: str, arguments: tuple[str, ...], directory: Path) -> None:
        fields = {"variables": {}, "result": "", "directory": str(directory)}
        self.send("start", child=child, arguments=arguments, **fields)

    def hang_up(self) -> None:
        os.close(self.writes)
        self.writes = -1

    def received(self) -> list[Message]:
        return [message_in(line) for line in LineSplitter().feed(os.read(self.reads, 1 << 20))]

    def close(self) -> None:
        for descriptor in (self.runner_reads, self.writes, self.reads, self.runner_writes):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    launcher = Launcher()
    yield launcher
    launcher.close()
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_runner_ends_its_processes_with_a_launcher_that_is_silent(
    launcher: Launcher, tmp_path: Path
) -> None:
    launcher.start("trainer.0", WAITS, tmp_path)

    Runner(launcher.uplink, os.environ, HurriedClock()).serve()

    here, started, *_ = launcher.received()
    assert (here["kind"], started["kind"]) == ("here", "started")
    assert not Path(f"/proc/{started['pid']}").exists()


def test_a_runner_ends_its_processes_when_the_launcher_hangs_up(
    launcher: Launcher, tmp_path: Path
) -> None:
    launcher.start("trainer.0", WAITS, tmp_path)
    launcher.hang_up()

    Runner(launcher.uplink, os.environ, FrozenClock()).serve()

    started = launcher.received()[1]
    assert not Path(f"/proc/{started['pid']}").exists()


def test_the_working_directory_that_a_host_lacks_is_named(
    launcher: Launcher, tmp_path: Path
) -> None:
    launcher.start("trainer.0", WAITS, tmp_path / "shared")
    launcher.hang_up()

    Runner(launcher.uplink, os.environ, FrozenClock()).serve()

    _, output, ended = launcher.received()
    assert f"cannot start trainer.0 in {tmp_path}/shared" in output["text"]
    assert "--bring" in output["text"]
    assert ended["code"] == 127


def test_output_and_exit_code_of_a_process_are_passed_on(
    launcher: Launcher, tmp_path: Path
) -> None:
    launcher.start("trainer.1", FAILS, tmp_path)
    launcher.send("signal", child="trainer.9", number=15)  # of a process that is not there

    until_the_end = UntilTheEnd(launcher.uplink)
    Runner(until_the_end, os.environ, until_the_end).serve()

    *outputs, ended = launcher.received()[2:]
    assert "".join(each["text"] for each in outputs) == "lost\n"
    assert {each["stream"] for each in outputs} == {2}
    assert ended == {"kind": "ended", "child": "trainer.1", "code": 7}


class UntilTheEnd:
    """An uplink and a clock that leaps once the end of a process has been sent."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink, self._has_ended = uplink, False
        self.read_fd, self.host, self.receive = uplink.read_fd, uplink.host, uplink.receive

    def send(self, kind: str, **fields: object) -> None:
        self._has_ended = self._has_ended or kind == "ended"
        self._uplink.send(kind, **fields)

    def now(self) -> float:
        return 1e9 if self._has_ended else 0.0
