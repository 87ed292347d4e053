"""An honest trainer and its pserver while strangers send frames and keep connections open.

    guarded pserver (tokens) ◀─ honest trainer, strangers, half of the crowd
    victim (admits everybody) ◀─ strangers, the other half of the crowd

Calm and attacked phases take turns, so that the speeds of both are those of one time. The strangers
and the victim run at the lowest priority: what is measured is the work that strangers make for the
guarded pserver.
"""

from __future__ import annotations

import contextlib
import json
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

    def __init__(self, module: str, *arguments: str, nice: int = 0) -> None:
        command = "nice", "-n", str(nice), sys.executable, "-m", f"tests.fuzz.{module}", *arguments
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


@dataclass
class Attack:
    """The facts of an attack; speeds are steps of the honest trainer a second."""

    frames: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    calm: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    rss_mib: dict[str, list[int]] = field(default_factory=dict)
    crowd: dict[str, int] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        calm, attacked = (sorted(each)[len(each) // 2] for each in (self.calm, self.attacked))
        return {
            "frames": sum(self.frames.values()),
            "by_door": dict(self.frames),
            "steps_per_s": {"calm": round(calm, 1), "attacked": round(attacked, 1)},
            "ratio": round(attacked / calm, 3),
            "rss_mib": self.rss_mib,
            "connections": self.crowd,
        }


def attack(folder: Path, seconds: float, turns: int, connections: int, seed: int) -> Attack:
    """Attack for `seconds`, in `turns`, with a crowd of `connections`."""
    found = Attack()
    with _servers(folder) as (guarded, victim, honest):
        processes = {"guarded": guarded["pid"], "victim": victim["pid"]}
        for turn in range(turns):
            found.calm.append(_speed(honest, _CALM_SHARE * seconds / turns))
            enemies = _strangers(folder, seed + 2 * turn, connections)
            found.attacked.append(_speed(honest, seconds / turns))
            _add(found, enemies)
            for name, pid in processes.items():
                found.rss_mib.setdefault(name, []).append(_rss_mib(pid))
            if not honest.is_alive:
                found.defects.append("the honest trainer ended")
                break
    return found


def _strangers(folder: Path, seed: int, connections: int) -> list[Child]:
    """Those who send frames to both servers, and the crowd; all have begun."""
    enemies = [
        Child("thrower", str(folder / f"{name}.json"), str(seed + number), nice=19)
        for number, name in enumerate(("guarded", "victim"))
    ]
    enemies.append(Child("crowd", str(folder / "all.json"), str(connections), nice=19))
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
def _servers(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Child]]:
    """The guarded pserver, the victim, and the honest trainer; both must survive."""
    tokens = folder / "tokens.toml"
    text = "\n".join(text_of(Token(name, new_key(), name)) for name in ("admin", "train"))
    tokens.touch(mode=0o600)
    tokens.write_text(text)
    flags = "--token-file", str(tokens), "--stay", "--metrics", "127.0.0.1:0"
    with daemon(folder, *flags, is_forked=False) as pserver, contextlib.ExitStack() as stack:
        victim = Child("victim", str(folder / "victim.json"), nice=19)
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


def _speed(honest: Child, seconds: float) -> float:
    """Steps a second of the honest trainer, over some seconds."""
    first, began = int(honest.last), time.perf_counter()
    threading.Event().wait(seconds)
    return (int(honest.last) - first) / (time.perf_counter() - began)


def _rss_mib(pid: int) -> int:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def usable_connections(wanted: int) -> int:
    """`wanted`, or what the limit of descriptors leaves."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, hard - _OTHER_FILES)
