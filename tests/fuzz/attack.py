"""An honest trainer and its pserver while strangers send frames and keep connections open.

    guarded pserver (tokens) ◀─ honest trainer, strangers, half of the crowd
    victim (admits everybody) ◀─ strangers, the other half of the crowd

Calm and attacked phases take turns, so that the speeds of both are those of one time. Strangers and
victim would be other hosts, and take the processors of this one. So two figures are lower bounds of
the speed that strangers leave, and the higher one counts: the speed itself, from which the time of
strangers is missing, and the share of the processor time that is not work for strangers, which is
right if no other core could do that work.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psrt.rpc.access import Token, new_key, text_of
from tests.support.carriers import eventually
from tests.support.pserver import daemon

READY_S = 180.0
END_S = 60.0
_CALM_SHARE = 0.25
_OTHER_FILES = 500


class Child:
    """A module of this room in a process of its own; `last` is its latest line of output."""

    def __init__(self, module: str, *arguments: str, nice: int | None = None) -> None:
        lower = "0" if nice is None else str(nice - os.getpriority(os.PRIO_PROCESS, 0))
        command = "nice", "-n", lower, sys.executable, "-m", f"tests.fuzz.{module}", *arguments
        self.name, self.last, self.lines = module, "", 0
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.last, self.lines = line, self.lines + 1

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> int:
        """Close its input; returns its exit code, and kills it if it does not end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._reader.join(END_S)
        self._process.stdout.close()
        return code


@dataclass(frozen=True)
class Phase:
    """Steps of the honest trainer a second, and processor time of a step, its pserver's too."""

    steps_per_s: float
    cpu_ms: float


@dataclass
class Attack:
    """The facts of an attack.

    `cores` of the report is the processor time of trainer and pserver a second in calm phases, and
    what strangers add to it: they make work by the second, whatever the number of steps meanwhile.
    """

    frames: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    calm: list[Phase] = field(default_factory=list)
    attacked: list[Phase] = field(default_factory=list)
    rss_mib: dict[str, list[int]] = field(default_factory=dict)
    crowd: dict[str, int] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        calm, attacked = _median(self.calm), _median(self.attacked)
        added = attacked.steps_per_s * (attacked.cpu_ms - calm.cpu_ms) / 1e3
        used = calm.steps_per_s * calm.cpu_ms / 1e3
        speed = attacked.steps_per_s / calm.steps_per_s
        return {
            "frames": sum(self.frames.values()),
            "by_door": dict(self.frames),
            "steps_per_s": {
                "calm": round(calm.steps_per_s, 1),
                "attacked": round(attacked.steps_per_s, 1),
                "ratio": round(speed, 3),
            },
            "cpu_ms_of_a_step": {
                "calm": round(calm.cpu_ms, 3),
                "attacked": round(attacked.cpu_ms, 3),
            },
            "cores": {
                "calm": round(used, 3),
                "added": round(added, 3),
                "ratio": round(used / (used + added), 3),
            },
            "ratio": round(max(speed, used / (used + added)), 3),
            "rss_mib": self.rss_mib,
            "connections": self.crowd,
        }


def attack(
    folder: Path, seconds: float, turns: int, connections: int, seed: int, nice: int | None = 19
) -> Attack:
    """Attack for `seconds`, in `turns`, with a crowd of `connections`.

    Strangers have the priority `nice`, None = that of this process.
    """
    found = Attack()
    with _servers(folder, nice) as (guarded, victim, honest):
        processes = {"guarded": guarded["pid"], "victim": victim["pid"]}
        for turn in range(turns):
            found.calm.append(_phase(honest, guarded["pid"], _CALM_SHARE * seconds / turns))
            enemies = _strangers(folder, seed + 2 * turn, connections, nice)
            found.attacked.append(_phase(honest, guarded["pid"], seconds / turns))
            _add(found, enemies)
            for name, pid in processes.items():
                found.rss_mib.setdefault(name, []).append(_rss_mib(pid))
            if not honest.is_alive:
                found.defects.append("the honest trainer ended")
                break
    return found


def _strangers(folder: Path, seed: int, connections: int, nice: int | None) -> list[Child]:
    """Those who send frames to both servers, and the crowd; all have begun."""
    enemies = [
        Child("thrower", str(folder / f"{name}.json"), str(seed + number), nice=nice)
        for number, name in enumerate(("guarded", "victim"))
    ]
    enemies.append(Child("crowd", str(folder / "all.json"), str(connections), nice=nice))
    eventually(lambda: all(each.lines for each in enemies), "the strangers", READY_S)
    return enemies


def _add(found: Attack, enemies: list[Child]) -> None:
    """End the strangers, and count what they sent."""
    for enemy in enemies:
        code, said = enemy.end(), json.loads(enemy.last)
        if code:
            found.defects.append(f"{enemy.name} ended with {code}")
        if enemy.name == "crowd":
            found.crowd = {key: max(found.crowd.get(key, 0), said[key]) for key in said}
        else:
            found.frames.update(said["frames"])
            found.defects += said["hangs"]


@contextlib.contextmanager
def _servers(
    folder: Path, nice: int | None
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Child]]:
    """The guarded pserver, the victim, and the honest trainer; both must survive."""
    tokens = folder / "tokens.toml"
    text = "\n".join(text_of(Token(name, new_key(), name)) for name in ("admin", "train"))
    tokens.touch(mode=0o600)
    tokens.write_text(text)
    flags = "--token-file", str(tokens), "--stay", "--metrics", "127.0.0.1:0"
    with daemon(folder, *flags, is_forked=False) as pserver, contextlib.ExitStack() as stack:
        victim = Child("victim", str(folder / "victim.json"), nice=nice)
        stack.callback(victim.end)
        eventually(lambda: (folder / "victim.json").exists(), "the victim", READY_S)
        honest = Child("honest", pserver.endpoint, str(tokens))
        stack.callback(honest.end)
        eventually(lambda: honest.lines > 1 or not honest.is_alive, "the first steps", READY_S)
        facts = pserver.facts
        guarded = {
            "grpc": pserver.endpoint,
            "stream": facts["data_endpoints"][0],
            "unix": facts["unix_path"],
            "http": facts["metrics"],
        }
        (folder / "guarded.json").write_text(json.dumps(guarded))
        theirs = json.loads((folder / "victim.json").read_text())
        everybody = {**{f"victim {key}": value for key, value in theirs.items()}, **guarded}
        (folder / "all.json").write_text(json.dumps(everybody))
        yield {"pid": facts["pid"]}, {"pid": victim.pid}, honest
        codes = honest.end(), victim.end(), pserver.end()
        tracebacks = pserver.log.read_text().count("Traceback")
    if any(codes) or tracebacks:
        raise AssertionError(
            f"exit codes of honest trainer, victim and pserver: {codes}; {tracebacks} tracebacks"
        )


def _phase(honest: Child, pserver: int, seconds: float) -> Phase:
    """Some seconds of the honest trainer."""
    first, began, used_s = int(honest.last), time.perf_counter(), _cpu_s(honest.pid, pserver)
    threading.Event().wait(seconds)
    steps = int(honest.last) - first
    took_s, used_s = time.perf_counter() - began, _cpu_s(honest.pid, pserver) - used_s
    return Phase(steps / took_s, 1e3 * used_s / max(steps, 1))


def _cpu_s(*pids: int) -> float:
    """Processor time of processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    ticks = sum(int(each[11]) + int(each[12]) for each in fields)
    return ticks / os.sysconf("SC_CLK_TCK")


def _median(phases: list[Phase]) -> Phase:
    """The medians of both figures."""
    speeds = sorted(each.steps_per_s for each in phases)
    return Phase(speeds[len(speeds) // 2], sorted(each.cpu_ms for each in phases)[len(speeds) // 2])


def _rss_mib(pid: int) -> int:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def usable_connections(wanted: int) -> int:
    """`wanted`, or what the limit of descriptors leaves."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, hard - _OTHER_FILES)
