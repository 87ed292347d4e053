"""The table of engines: how each makes an engine for a plan, and the plan as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psrt.launch.children import Engine
from psrt.launch.engines import kubernetes, local, ray, ssh
from psrt.launch.plan import Plan


@dataclass(frozen=True)
class EngineKind:
    """One row: `make` an engine for a plan, with a function for lines of progress.

    `describe` returns what `--dry-run` prints, all that the engine would start; it starts nothing.
    """

    make: Callable[[Plan, Callable[[str], None]], Engine]
    describe: Callable[[Plan], str]


TABLE = {
    "local": EngineKind(lambda plan, say: local.LocalEngine(say), local.described),
    "ssh": EngineKind(ssh.ssh_engine, ssh.described),
    "kubernetes": EngineKind(kubernetes.kubernetes_engine, kubernetes.described),
    "ray": EngineKind(ray.ray_engine, ray.described),
}
"""Name, one of `ENGINES` in `psrt.config.sections` → its row."""
