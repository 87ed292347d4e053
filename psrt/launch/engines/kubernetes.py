"""The engine `kubernetes`: the Helm chart with a plan's values, and kubectl.

The cluster places pods and replaces failed ones; the launch waits, collects logs and reports, and
deletes what it has created. All pods are created at once: trainers wait for pservers themselves.
"""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable, Iterable

from psrt.config.load import environment, load_job
from psrt.core.errors import ConfigError, JobError
from psrt.launch.children import Child
from psrt.launch.kubernetes import (
    Followed,
    Kubectl,
    PodChild,
    PodFacts,
    Release,
    first_failures,
    host_name,
    read_facts,
    release_name,
    rendered,
    values_of,
)
from psrt.launch.plan import PSERVER, ChildId, Command, Plan

_LOOK_EVERY_S = 1.0
_DELETE_S = 60.0
_CUT = "import os, signal; os.kill(1, signal.SIGUSR1)"


def kubernetes_engine(plan: Plan, say: Callable[[str], None]) -> KubernetesEngine:
    """Render the chart for a plan; raises `ConfigError` without kubectl or Helm."""
    kubectl = Kubectl(plan.config.namespace)
    return KubernetesEngine(plan, _release(plan, kubectl.namespace), kubectl, say)


def described(plan: Plan) -> str:
    """The manifests, as kubectl takes them."""
    release = _release(plan, plan.config.namespace or "default")
    return release.kept + release.objects


def _release(plan: Plan, namespace: str) -> Release:
    job = load_job(plan.config.job, environ=environment()).config
    values = values_of(plan, job)
    return rendered(release_name(job.name), namespace, plan.config.chart_values, values)


class KubernetesEngine:
    """Processes in pods of one release, which `close` deletes."""

    name, can_stand_by = "kubernetes", False

    def __init__(
        self, plan: Plan, release: Release, kubectl: Kubectl, say: Callable[[str], None]
    ) -> None:
        self._plan, self._release, self._kubectl, self._say = plan, release, kubectl, say
        self._is_created = False
        self._children: dict[ChildId, PodChild] = {}
        self._look: Followed | None = None
        self._look_at = 0.0
        self._logs: dict[str, tuple[Followed, ChildId]] = {}
        self._logged: set[str] = set()
        self._ended_roles: set[tuple[str, int]] = set()

    def is_open(self) -> bool:
        """Create all objects; raises `ConfigError` if the namespace has a job of this name."""
        if self._is_created:
            return True
        selector = f"--selector=app.kubernetes.io/instance={self._release.name}"
        if found := self._kubectl.run("get", "jobs,services", selector, "--output=name").split():
            raise ConfigError(
                f"namespace {self._kubectl.namespace!r} has {', '.join(found)} already; nothing "
                "was started.",
                hint=f"Wait for that job, or kubectl delete jobs,services,configmaps {selector}; "
                "or give this job another name.",
            )
        if self._release.kept:
            self._kubectl.run("apply", "--filename=-", given=self._release.kept)
        self._is_created = True
        self._kubectl.run("create", "--filename=-", given=self._release.objects)
        self._say(f"created release {self._release.name} in {self._kubectl.namespace}")
        return True

    def host_of(self, child: ChildId) -> str:
        return host_name(self._release.name, self._kubectl.namespace, child)

    def start(self, command: Command, now: float, takes_over: bool = False) -> Child:
        address = ""
        if command.child.role == PSERVER:
            address = f"{self.host_of(command.child)}:{self._port}"
        found = PodChild(command, address, now, self._say, self._signal)
        self._children[command.child] = found
        return found

    def stand_by(self, command: Command) -> None:
        """Do nothing: processes stand by only on this host."""

    def standby_has_ended(self) -> bool:
        return False

    def pump(self, timeout_s: float) -> None:
        """Look at the pods once a second, and read their logs."""
        if self._look is None and time.monotonic() >= self._look_at and self._children:
            self._look_at = time.monotonic() + _LOOK_EVERY_S
            selector = f"--selector=app.kubernetes.io/instance={self._release.name}"
            self._look = self._kubectl.follow("get", "pods,jobs", selector, "--output=json")
        readers = [log for log, _ in self._logs.values()]
        readers += [self._look] if self._look else []
        if not readers:
            time.sleep(timeout_s)
            return
        ready, _, _ = select.select(readers, [], [], timeout_s)
        self._read_logs(ready)
        if self._look in ready:
            self._read_look()

    def close(self) -> None:
        """Delete what was created, and wait until it is gone."""
        for log, _ in self._logs.values():
            log.close()
        if self._look is not None:
            self._look.close()
        if self._is_created:
            words = ["--ignore-not-found", "--wait", f"--timeout={_DELETE_S:g}s"]
            words += ["--cascade=foreground", "--filename=-"]
            try:
                self._kubectl.run("delete", *words, given=self._release.objects)
            except JobError as error:
                self._say(f"release {self._release.name} is not deleted as a whole: {error}")

    @property
    def _port(self) -> str:
        """The port of pservers, which the chart's values may have changed."""
        rest = self._release.objects.partition("name: grpc, port: ")[2]
        return rest.partition(",")[0]

    def _read_logs(self, ready: Iterable[Followed]) -> None:
        for pod, (log, child) in list(self._logs.items()):
            if log not in ready:
                continue
            chunk = log.read()
            if chunk is None:
                log.close()
                del self._logs[pod]
                self._logged.add(pod)
            elif chunk:
                self._children[child].append(chunk)

    def _read_look(self) -> None:
        assert self._look is not None
        chunk = self._look.read()
        if chunk is not None:
            self._look.text += chunk
            return
        text = self._look.text.decode()
        self._look.close()
        self._look = None
        if text:  # else the API server did not answer; the next look may
            self._update(text)

    def _update(self, text: str) -> None:
        pods, jobs = read_facts(text)
        culprits = first_failures(pods, jobs)
        for child, process in self._children.items():
            own = pods.get(child, [])
            for pod in own:
                self._follow(pod, child)
            culprit = self._children.get(culprits.get(child.role, child), process)
            if culprit is not process and not culprit.has_ended:
                continue  # its end comes first
            is_logged = bool(own) and (own[-1].name in self._logged or not own[-1].has_started)
            process.update(own, jobs.get(child.role), is_logged=is_logged)

    def _follow(self, pod: PodFacts, child: ChildId) -> None:
        """Follow the log of a pod once it has one."""
        if pod.has_started and pod.name not in self._logged and pod.name not in self._logs:
            self._logs[pod.name] = self._kubectl.follow("logs", "--follow", pod.name), child

    def _signal(self, child: ChildId, number: signal.Signals) -> None:
        if number == signal.SIGUSR1:
            self._kubectl.run("exec", f"job/{self._group(child.role)}", "--", "python", "-c", _CUT)
            return
        if (child.role, number) in self._ended_roles:
            return  # the Job and all its pods, as processes of a role end together
        self._ended_roles.add((child.role, number))
        words = ["--ignore-not-found", "--wait=false"]
        words += ["--grace-period=0", "--force"] if number == signal.SIGKILL else []
        self._kubectl.run("delete", "job", self._group(child.role), *words)
        if number == signal.SIGKILL:
            selector = f"--selector=batch.kubernetes.io/job-name={self._group(child.role)}"
            self._kubectl.run("delete", "pods", selector, *words)

    def _group(self, role: str) -> str:
        return f"{self._release.name}-{role}"
