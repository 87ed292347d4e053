"""The engine `ray`: an actor of a Ray cluster for each process.

Pservers are detached actors in a placement group of their own, so they and their tables outlive
trainers and the launcher: the next launch of a job finds those that a killed launcher has left, by
name. Trainers are actors of the launch in a second group; one that is lost with its node may be
started again on another. A launch that ends by itself, or is interrupted, ends both.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psrt.core.errors import ConfigError, JobError
from psrt.core.extras import required
from psrt.launch.children import Child
from psrt.launch.engines.ray_actor import ProcessActor
from psrt.launch.plan import PSERVER, TRAINER, ChildId, Command, Plan
from psrt.launch.plan_text import commands_text
from psrt.launch.runners import Message, RemoteChild

NAMESPACE = "psrt"
"""The namespace of Ray for names of pservers."""

_POLL_EVERY_S = 0.2
_END_S = 10.0
_CONNECT_S = 10.0
_KILLED = -9


def ray_engine(plan: Plan, say: Callable[[str], None]) -> RayEngine:
    """Connect to the cluster; raises `ConfigError` without Ray, `JobError` without a cluster."""
    ray = required("ray", "ray", "--on ray")
    address = plan.config.ray_address or "auto"
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _check_reachable(plan.config.ray_address)
        ray.init(address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError) as error:
        raise JobError(
            f"--on ray found no cluster at {address!r}: {error}",
            hint="Start one by `ray start --head`, or name it: --ray-address HOST:PORT.",
        ) from error
    finally:
        signal.signal(signal.SIGTERM, handler)  # that of Ray would end the launch at once
    return RayEngine(plan, say, ray)


def _check_reachable(address: str) -> None:
    """Raise `OSError` where nobody listens; Ray would try again for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), _CONNECT_S).close()


def described(plan: Plan) -> str:
    """The actors with their resources, and all processes."""
    lines = [
        f"# Ray cluster {plan.config.ray_address or 'auto'}, namespace {NAMESPACE}",
        f"# group {_group(plan, PSERVER)}: {_bundles(plan, PSERVER)}, detached",
        f"# group {_group(plan, TRAINER)}: {_bundles(plan, TRAINER)}",
        "",
    ]
    return "\n".join(lines) + commands_text(plan, lambda child: f"NODE_OF_{child}".upper())


class RayEngine:
    """Processes by actors of a cluster that this process is connected to, until `close`."""

    name, can_stand_by = "ray", False

    def __init__(self, plan: Plan, say: Callable[[str], None], ray: Any) -> None:
        self._plan, self._say, self._ray = plan, say, ray
        self._actor_type = ray.remote(ProcessActor)
        self._groups: dict[str, Any] = {}
        self._actors: dict[ChildId, Any] = {}
        self._addresses: dict[ChildId, Any] = {}  # references, then texts
        self._left: dict[ChildId, list[Message]] = {}  # pservers that an earlier launch has left
        self._children: dict[ChildId, RemoteChild] = {}
        self._polls: dict[Any, ChildId] = {}
        self._poll_at = 0.0

    def is_open(self) -> bool:
        """Place both groups, then the actors of all pservers."""
        if not self._groups:
            self._groups = {role: self._make_group(role) for role in (PSERVER, TRAINER)}
        if not all(group.wait(0.01) for group in self._groups.values()):
            return False
        pservers = [ChildId(PSERVER, index) for index in range(self._plan.config.pservers)]
        if not self._actors:
            for child in pservers:
                self._actors[child] = self._found(child) or self._make(child)
            self._addresses = {child: self._actors[child].address.remote() for child in pservers}
        references = list(self._addresses.values())
        if len(self._ray.wait(references, num_returns=len(references), timeout=0)[1]):
            return False
        self._addresses = {child: self._ray.get(each) for child, each in self._addresses.items()}
        return True

    def host_of(self, child: ChildId) -> str:
        return str(self._addresses[child])

    def start(self, command: Command, now: float, takes_over: bool = False) -> Child:
        child = command.child
        if child.role == TRAINER:
            self._actors[child] = self._make(child)
        host = str(self._addresses.get(child, "ray"))
        process = RemoteChild(command, host, now, self._say, self._signal)
        self._children[child] = process
        facts = self._left.pop(child, None)
        if facts is None:
            self._actors[child].start.remote(self._message(command))
        else:
            self._say(f"{child} of an earlier launch goes on")
        for fact in facts or []:
            process.handle(fact)
        return process

    def stand_by(self, command: Command) -> None:
        """Do nothing: processes stand by only on this host."""

    def standby_has_ended(self) -> bool:
        return False

    def pump(self, timeout_s: float) -> None:
        """Poll the actors of all processes that run, a few times a second."""
        if not self._polls and time.monotonic() >= self._poll_at:
            self._poll_at = time.monotonic() + _POLL_EVERY_S
            running = [c for c, process in self._children.items() if not process.has_ended]
            self._polls = {self._actors[child].poll.remote(): child for child in running}
        if not self._polls:
            time.sleep(timeout_s)
            return
        references = list(self._polls)
        ready, _ = self._ray.wait(references, num_returns=len(references), timeout=timeout_s)
        for reference in ready:
            self._handle(self._polls.pop(reference), reference)

    def close(self) -> None:
        """End all processes and actors, remove both groups, and leave the cluster."""
        ends = [actor.end.remote() for actor in self._actors.values()]
        self._ray.wait(ends, num_returns=len(ends), timeout=_END_S) if ends else None
        for actor in self._actors.values():
            self._ray.kill(actor)
        for group in self._groups.values():
            self._ray.util.remove_placement_group(group)
        self._ray.shutdown()

    def _make_group(self, role: str) -> Any:
        """Make a placement group, or find that of pservers which an earlier launch has left."""
        name = _group(self._plan, role)
        if role == PSERVER:
            try:
                return self._ray.util.get_placement_group(name)
            except ValueError:
                pass  # there is none
        lifetime = "detached" if role == PSERVER else None
        bundles = _bundles(self._plan, role)
        return self._ray.util.placement_group(bundles, "SPREAD", name=name, lifetime=lifetime)

    def _found(self, child: ChildId) -> Any:
        """The actor of a pserver that runs since an earlier launch, else None."""
        try:
            actor = self._ray.get_actor(_name(self._plan, child), namespace=NAMESPACE)
        except ValueError:
            return None
        with self._named_errors(child):
            facts = self._ray.get(actor.adopt.remote(), timeout=_END_S)
        if facts is None:
            self._ray.kill(actor)
            return None
        self._left[child] = facts
        return actor

    @contextmanager
    def _named_errors(self, child: ChildId) -> Iterator[None]:
        try:
            yield
        except self._ray.exceptions.RayError as error:
            self._groups.pop(PSERVER)  # they belong to the other launch
            raise ConfigError(
                f"{child} of job {_job(self._plan)!r} runs in this Ray cluster already, by another "
                "launch, or does not answer; nothing was started.",
                hint="Wait for that launch, or give this job another name.",
            ) from error

    def _make(self, child: ChildId) -> Any:
        """Make the actor of a process, in its place in the group of its role."""
        ray, group = self._ray, self._groups[child.role]
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            group, child.index % group.bundle_count
        )
        named = {"name": _name(self._plan, child), "lifetime": "detached"}
        options = named if child.role == PSERVER else {}
        (bundle,) = {each["CPU"] for each in _bundles(self._plan, child.role)}
        return self._actor_type.options(
            scheduling_strategy=strategy, num_cpus=bundle, **options
        ).remote(self._plan.files)

    def _message(self, command: Command) -> Message:
        return {
            "kind": "start",
            "child": str(command.child),
            "arguments": list(command.arguments),
            "result": str(command.result),
            "directory": "" if self._plan.files else str(Path.cwd()),
            "variables": {**self._plan.carried, **self._plan.variables},
        }

    def _signal(self, child: ChildId, number: int) -> None:
        self._actors[child].signal.remote(number)

    def _handle(self, child: ChildId, reference: Any) -> None:
        process = self._children[child]
        try:
            for message in self._ray.get(reference):
                process.handle(message)
        except self._ray.exceptions.RayError as error:
            why = f"its actor was lost: {type(error).__name__}: {str(error).splitlines()[0]}"
            # A trainer may begin again elsewhere; a pserver is called by its address alone.
            process.lose(why, **({"code": _KILLED} if child.role == TRAINER else {}))


def _job(plan: Plan) -> str:
    return plan.job_name


def _group(plan: Plan, role: str) -> str:
    return f"psrt-{_job(plan)}-{role}s"


def _name(plan: Plan, child: ChildId) -> str:
    return f"psrt-{_job(plan)}-{child}"


def _bundles(plan: Plan, role: str) -> list[dict[str, float]]:
    """A core for each pserver, and as many as it uses for each trainer."""
    if role == PSERVER:
        return [{"CPU": 1.0}] * plan.config.pservers
    return [{"CPU": float(plan.trainer_cores)}] * plan.config.trainers
