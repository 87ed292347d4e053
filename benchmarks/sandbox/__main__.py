"""W1 as services of systemd: inside their sandbox and outside of it, in turn.

    python -m benchmarks.sandbox [--mode async|sync|...] [--rounds 3] [--seconds 5]
                                 [--pservers 1] [--trainers 1]

Boots a systemd of its own in namespaces, over this host's files: needs root, systemd and control
groups of version 1. Inside, pservers and trainers are the units that `psrt service install` writes,
and trainers run the steps of `benchmarks.w1_ctr`. Outside, they are the same commands of the same
user, without a sandbox. Rounds alternate, and each begins with the other place.

    inside, outside   medians over the rounds: examples_per_s of all trainers after 20 steps,
                      and cpu_ms_per_step of a trainer, which other load disturbs less
    speed_inside      examples per second inside, divided by those outside
    cpu_inside        CPU time inside, divided by that outside
    exposures         scores of `systemd-analyze security` for the units
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import harness
from tests.support.systemd_box import PYTHON, VARIABLES, SystemdBox, missing

FIRST_PORT = 6170
TRAINER, PSERVER = "psrt-trainer@", "psrt-pserver@"
SHARE_KERNELS = """
install -d -o psrt -g psrt /var/lib/psrt/.cache/psrt
ln -s /var/cache/psrt/kernels /var/lib/psrt/.cache/psrt/kernels
"""
"""Trainers of W1 keep kernels below their home; no place compiles what the other one has."""
ENVIRONMENT = (*VARIABLES, *(f"{name}={value}" for name, value in harness.ONE_THREAD.items()))


class Place(ABC):
    """One run of W1 in a box, with or without the sandbox."""

    def __init__(self, box: SystemdBox, args: argparse.Namespace) -> None:
        self._box = box
        self.ports = [FIRST_PORT + index for index in range(args.pservers)]
        self.trainers = range(args.trainers)
        endpoints = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        flags = f"--mode={args.mode} --seconds={args.seconds} --trainers={args.trainers}"
        self.trainer = f"{PYTHON} -m benchmarks.w1_ctr {flags} --endpoints={endpoints}"

    def run(self) -> harness.Figures:
        """The figures of all trainers together."""
        begun = self._box.cursor()
        try:
            for port in self.ports:
                self.start_pserver(port)
            units = [self.start_trainer(number) for number in self.trainers]
            for unit in units:
                self._box.wait_for(unit, "ActiveState", "inactive")
        finally:
            self._box.run("systemctl stop 'psrt-*' 'plain-*'; systemctl reset-failed")
        return together([_figures(self._box.journal(unit, begun)) for unit in units])

    @abstractmethod
    def start_pserver(self, port: int) -> None:
        """Start a pserver, and wait until it is ready."""

    @abstractmethod
    def start_trainer(self, number: int) -> str:
        """Start a trainer; returns its unit."""


class Inside(Place):
    """The units of `psrt service install`; only the command of trainers is another one."""

    def __init__(self, box: SystemdBox, args: argparse.Namespace) -> None:
        super().__init__(box, args)
        variables = [f"Environment={each}" for each in ENVIRONMENT]
        box.drop_in(PSERVER, *variables)
        command = f"ExecStart={self.trainer} --as-trainer=%i"
        box.drop_in(TRAINER, *variables, "Type=exec", "WatchdogSec=0", "ExecStart=", command)
        for number in self.trainers:
            box.run(f"touch /etc/psrt/trainer/{number}.env")

    def start_pserver(self, port: int) -> None:
        self._box.run(f"systemctl start {PSERVER}{port}")

    def start_trainer(self, number: int) -> str:
        self._box.run(f"systemctl start {TRAINER}{number}")
        return f"{TRAINER}{number}"

    def exposures(self) -> dict[str, float]:
        """Scores of `systemd-analyze security`."""
        units = f"{PSERVER}{FIRST_PORT}.service", f"{TRAINER}0.service"
        reports = [self._box.run(f"systemd-analyze security --no-pager {unit}") for unit in units]
        found = [re.search(r"exposure level for (\S+?)@\S+: ([\d.]+)", each) for each in reports]
        return {match[1]: float(match[2]) for match in found if match}


class Outside(Place):
    """Transient units of the same user and commands, which have no sandbox."""

    def start_pserver(self, port: int) -> None:
        flags = f"--port {port} --cache-dir /var/cache/psrt/kernels"
        command = f"{PYTHON} -m psrt pserver {flags}"
        self._start(f"plain-pserver-{port}", "notify", command)

    def start_trainer(self, number: int) -> str:
        unit = f"plain-trainer-{number}"
        self._start(unit, "exec", f"{self.trainer} --as-trainer={number}")
        return unit

    def _start(self, unit: str, kind: str, command: str) -> None:
        given = " ".join(f"-E {each}" for each in ENVIRONMENT)
        run = f"systemd-run --quiet --unit={unit} --uid=psrt --gid=psrt -p Type={kind}"
        self._box.run(f"{run} {given} {command}")


def run(args: argparse.Namespace) -> harness.Figures:
    found: dict[str, list[harness.Figures]] = {"inside": [], "outside": []}
    with SystemdBox(Path(f"/run/psrt-sandbox-{os.getpid()}")) as box:
        box.run(SHARE_KERNELS)
        inside = Inside(box, args)
        places = {"inside": inside, "outside": Outside(box, args)}
        exposures = inside.exposures()
        for number in range(args.rounds):
            for name in sorted(places, reverse=number % 2 == 0):
                found[name].append(places[name].run())
                print(f"round {number + 1}, {name}: {found[name][-1]}", file=sys.stderr)
    medians = {name: _medians(rounds) for name, rounds in found.items()}
    settings = {name: getattr(args, name) for name in ("mode", "pservers", "trainers", "rounds")}
    return {
        "workload": "sandbox",
        **settings,
        **medians,
        "speed_inside": _ratio(medians, "examples_per_s"),
        "cpu_inside": _ratio(medians, "cpu_ms_per_step"),
        "exposures": exposures,
    }


def together(trainers: Sequence[harness.Figures]) -> harness.Figures:
    return {
        "examples_per_s": round(sum(each["examples_per_s"] for each in trainers)),
        "cpu_ms_per_step": round(statistics.mean(t["cpu_ms_per_step"] for t in trainers), 2),
    }


def _medians(rounds: Sequence[harness.Figures]) -> harness.Figures:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def _ratio(medians: dict[str, harness.Figures], name: str) -> float:
    return round(float(medians["inside"][name] / medians["outside"][name]), 3)


def _figures(journal: str) -> harness.Figures:
    """The JSON object that a trainer has written."""
    found = [line for line in journal.splitlines() if line.startswith('{"')]
    if not found:
        raise SystemExit(f"a trainer ended without figures:\n{journal}")
    return dict(json.loads(found[-1]))


if __name__ == "__main__":
    if lack := missing():
        raise SystemExit(f"benchmarks.sandbox {lack}")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mode", choices=("sync", "async", "geo"), default="async")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pservers", type=int, default=1)
    parser.add_argument("--trainers", type=int, default=1)
    harness.main(parser, run)
