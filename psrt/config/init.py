"""`psrt.init`: what a training script tells about its job, under the names of PaddlePaddle's v2.

    role = psrt.init(trainer_count=2, port=7164, pservers="10.0.0.1,10.0.0.2")

Its arguments count over the environment for this process, whatever reads settings later. What is
not given comes from the environment (`PADDLE_INIT_*`, or the names of later launchers), else from
the defaults of `InitArguments`. Nothing is exported: processes started from here do not see it.
The command `psrt init`, which writes a job to start from, is unrelated.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psrt.config import process
from psrt.config.derived import V2_PORT, refuse_gpu
from psrt.config.load import environment
from psrt.config.older_flags import instead_of
from psrt.config.roles import ClusterRole, cloud_role
from psrt.config.settings import Setting, setting, settings_of
from psrt.core.errors import ConfigError, ErrorCode

log = logging.getLogger("psrt.config")


@dataclass(frozen=True)
class InitArguments:
    """What `psrt.init` takes, each also from the variable `PADDLE_INIT_<NAME>`."""

    use_gpu: bool = setting(False, "Must be false: psrt computes on CPUs.")
    trainer_count: int = setting(1, "Replicas of the program in this trainer.", minimum=1)
    port: int = setting(V2_PORT, "Port of the pservers that are named without one.", minimum=1)
    ports_num: int = setting(
        1, "Data ports of a pserver served in this process; trainers are told them.", minimum=1
    )
    ports_num_for_sparse: int = setting(0, "As many more data ports, likewise.", minimum=0)
    num_gradient_servers: int = setting(1, "Number of trainers of the job.", minimum=1)
    trainer_id: int = setting(0, "Which trainer this is, from 0.", minimum=0)
    pservers: tuple[str, ...] = setting(
        ("127.0.0.1",), "Addresses of the pservers, in the same order on every trainer."
    )


_SETTINGS = {s.name: s for s in settings_of("init", InitArguments)}


def init(
    *,
    use_gpu: bool | None = None,
    trainer_count: int | None = None,
    port: int | None = None,
    ports_num: int | None = None,
    ports_num_for_sparse: int | None = None,
    num_gradient_servers: int | None = None,
    trainer_id: int | None = None,
    pservers: str | Sequence[str] | None = None,
    **unknown: Any,
) -> ClusterRole:
    """Say which part of which job this process is; returns that, read together with the
    environment.

    None means not given. `pservers` are addresses with commas or a list; one may bring its own
    port. Raises `ConfigError` for what no job can have. A later call replaces an earlier one and
    says so in the log; what was made in between keeps what it read.
    """
    for name in unknown:
        raise _unknown(name)
    arguments = {
        "use_gpu": use_gpu,
        "trainer_count": trainer_count,
        "port": port,
        "ports_num": ports_num,
        "ports_num_for_sparse": ports_num_for_sparse,
        "num_gradient_servers": num_gradient_servers,
        "trainer_id": trainer_id,
        "pservers": pservers,
    }
    return _tell({name: value for name, value in arguments.items() if value is not None})


def _tell(arguments: Mapping[str, Any]) -> ClusterRole:
    given = {f"PADDLE_INIT_{n.upper()}": _text(_SETTINGS[n], v) for n, v in arguments.items()}
    refuse_gpu(given.get("PADDLE_INIT_USE_GPU", ""), "use_gpu of psrt.init")
    before, process.TOLD.arguments = process.TOLD.arguments, given
    try:
        role = cloud_role(environment())
    except ConfigError:
        process.TOLD.arguments = before
        raise
    if before not in (None, given):
        log.warning("psrt.init was called again; these arguments count from now on: %s", arguments)
    return role


def _text(argument: Setting, value: Any) -> str:
    """A value as a variable has it, checked; text may stand for a number, as in a variable."""
    accept = argument.parse if isinstance(value, str) else argument.accept
    legal = accept(value, process.INIT)
    return ",".join(legal) if isinstance(legal, tuple) else str(legal)


def _unknown(name: str) -> ConfigError:
    nearest = difflib.get_close_matches(name, _SETTINGS, n=1, cutoff=0.5)
    known = f"Did you mean {nearest[0]!r}?" if nearest else f"Known: {', '.join(_SETTINGS)}."
    return ConfigError(
        f"psrt.init has no argument {name!r}.",
        code=ErrorCode.CONFIG_UNKNOWN_KEY,
        hint=instead_of(name) or known,
    )
