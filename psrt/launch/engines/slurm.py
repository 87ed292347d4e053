"""The engine `slurm` within an allocation: a runner on each node, as a step of `srun`.

A job with two components has pservers in the first and trainers in the second one; in any other
allocation both share the nodes.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from psrt.config.load import environment
from psrt.core.errors import ConfigError, JobError
from psrt.launch.hosts import Host, placed
from psrt.launch.plan import PSERVER, TRAINER, ChildId, Plan
from psrt.launch.plan_text import commands_text
from psrt.launch.runners import PipeLink, RunnerConnection, RunnerEngine, runner_command

ALLOCATION = "SLURM_JOB_ID"
_COMMAND_S = 60.0
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")

Run = Callable[[Sequence[str]], str]
"""Runs a command of Slurm and returns its output."""


@dataclass(frozen=True)
class Node:
    """A node of one component of a job, -1 = the job has no components."""

    name: str
    component: int = -1


class Allocation:
    """The nodes of the job of Slurm that this process is in, and the node of each process."""

    def __init__(self, plan: Plan, environ: Mapping[str, str], run: Run) -> None:
        self._trainers = plan.config.trainers
        counts = {PSERVER: plan.config.pservers, TRAINER: plan.config.trainers}
        self._place: dict[ChildId, Node] = {}
        if int(environ.get("SLURM_HET_SIZE", "1")) > 1:
            for component, (role, count) in enumerate(counts.items()):
                hosts = _hosts(environ, f"_HET_GROUP_{component}", run)
                self._take(hosts, component, [ChildId(role, index) for index in range(count)])
        else:
            children = [ChildId(role, index) for role in counts for index in range(counts[role])]
            self._take(_hosts(environ, "", run), -1, children)
        self.nodes = list(dict.fromkeys(self._place.values()))

    def node(self, child: ChildId) -> Node:
        """The node of a process; a trainer beyond the first ones begins their order again."""
        if child.role == TRAINER:
            child = ChildId(TRAINER, child.index % self._trainers)
        return self._place[child]

    def _take(self, hosts: Sequence[Host], component: int, children: Sequence[ChildId]) -> None:
        try:
            places = placed(hosts, len(children))
        except ConfigError as error:
            raise ConfigError(
                f"{len(children)} processes need as many tasks of Slurm; this job has "
                f"{sum(host.slots for host in hosts)} for them. Nothing was started.",
                hint="Ask for more by --ntasks of salloc or sbatch.",
            ) from error
        for child, place in zip(children, places, strict=True):
            self._place[child] = Node(hosts[place].name, component)


class SlurmReach:
    """Steps of this allocation; messages of `srun` go to files in the directory of logs."""

    def __init__(self, plan: Plan, environ: Mapping[str, str], run: Run) -> None:
        self._plan, self._environ, self._run = plan, environ, run
        self._allocation = Allocation(plan, environ, run)
        self._open: list[RunnerConnection] = []

    def connections(self) -> list[RunnerConnection]:
        for node in self._allocation.nodes:
            log = Path(self._plan.config.log_dir) / f"srun.{node.name}.log"
            try:
                link = PipeLink(srun_line(self._plan, node), self._environ, log)
            except OSError as error:
                raise JobError(f"srun cannot be started: {error}; nothing was started.") from error
            address = address_of(node.name, self._run)
            self._open.append(RunnerConnection(node.name, link, address))
        return self._open

    def place(self, child: ChildId) -> int:
        return self._allocation.nodes.index(self._allocation.node(child))

    def close(self) -> None:
        """Steps have ended with their pipes."""


def slurm_engine(plan: Plan, say: Callable[[str], None]) -> RunnerEngine:
    """Return the engine for the allocation that this process is in; raises `ConfigError`."""
    return RunnerEngine("slurm", SlurmReach(plan, environment(), run_command), plan, say)


def described_steps(plan: Plan, environ: Mapping[str, str], run: Run) -> str:
    """The steps of an allocation, and the processes on its nodes."""
    allocation = Allocation(plan, environ, run)
    steps = [shlex.join(srun_line(plan, node)) for node in allocation.nodes]
    commands = commands_text(plan, lambda child: address_of(allocation.node(child).name, run))
    return "\n".join(["# steps of this job", *steps, "", commands])


def srun_line(plan: Plan, node: Node) -> list[str]:
    """Return the words that start a runner on a node.

    It shares all that the job has on the node with other steps: its processes are as many as the
    job has tasks there.
    """
    group = [] if node.component < 0 else [f"--het-group={node.component}"]
    step = ["--nodes=1", "--ntasks=1", f"--nodelist={node.name}", "--overlap", "--cpu-bind=none"]
    return ["srun", *group, *step, "--job-name=psrt", *runner_command(plan.config.python)]


def address_of(node: str, run: Run) -> str:
    """The address of a node in Slurm's tables."""
    facts = dict(
        each.partition("=")[::2] for each in run(["scontrol", "-o", "show", "node", node]).split()
    )
    return facts.get("NodeAddr", node)


def run_command(words: Sequence[str]) -> str:
    """Run a command of Slurm; raises `JobError` with its own words."""
    try:
        done = subprocess.run(
            words,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JobError(
            f"{words[0]} cannot be run: {error}.", hint="Is this a host of a Slurm cluster?"
        ) from error
    if done.returncode:
        raise JobError(
            f"{shlex.join(words)} failed with code {done.returncode}: {done.stderr.strip()}"
        )
    return done.stdout


def _hosts(environ: Mapping[str, str], suffix: str, run: Run) -> list[Host]:
    names = environ[f"SLURM_JOB_NODELIST{suffix}"]
    nodes = run(["scontrol", "show", "hostnames", names]).split()
    tasks = environ.get(f"SLURM_TASKS_PER_NODE{suffix}", "")
    return [Host(name, slots) for name, slots in zip(nodes, _slots(tasks), strict=True)]


def _slots(tasks: str) -> list[int]:
    """The tasks of each node from `2(x3),1`."""
    found = _TASKS.findall(tasks)
    return [int(slots) for slots, times in found for _ in range(int(times or 1))]
