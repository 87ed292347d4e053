"""`psrt.init`: the role of a training script in its job, under the names of PaddlePaddle's v2.

    role = psrt.init(trainer_count=2, port=7164, pservers="10.0.0.1,10.0.0.2")

Its arguments override the environment for all later reads of this process. Arguments that are not
given come from the environment (`PADDLE_INIT_*`, or the names of later launchers), else from the
defaults of `InitArguments`. Nothing is exported to child processes. The command `psrt init`, which
writes a job to start from, is unrelated.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psrt.config import overrides
from psrt.config.load import environment
from psrt.config.older_flags import instead_of
from psrt.config.older_variables import V2_PORT, refuse_gpu
from psrt.config.roles import ClusterRole, cloud_role
from psrt.config.settings import Setting, setting, settings_of
from psrt.core.errors import ConfigError, ErrorCode

log = logging.getLogger("psrt.config")


@dataclass(frozen=True)
class InitArguments:
    """Arguments of `psrt.init`, each also read from the variable `PADDLE_INIT_<NAME>`."""

    use_gpu: bool = setting(False, "Must be false: psrt computes on CPUs.")
    trainer_count: int = setting(1, "Replicas of the program in this trainer.", minimum=1)
    port: int = setting(V2_PORT, "Port of the pservers that are named without one.", minimum=1)
    ports_num: int = setting(1, "Data ports of a pserver served in this process.", minimum=1)
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
    """Set the role of this process in its job; returns it, together with the environment.

    None means not given. `pservers` is a list of addresses or a text with commas; an address may
    have its own port. Raises `ConfigError` for unknown names and illegal values. A later call
    replaces an earlier one and logs a warning; objects made in between keep their settings.
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
    return _apply({name: value for name, value in arguments.items() if value is not None})


def _apply(arguments: Mapping[str, Any]) -> ClusterRole:
    given = {f"PADDLE_INIT_{n.upper()}": _text(_SETTINGS[n], v) for n, v in arguments.items()}
    refuse_gpu(given.get("PADDLE_INIT_USE_GPU", ""), "use_gpu of psrt.init")
    before, overrides.OVERRIDES.arguments = overrides.OVERRIDES.arguments, given
    try:
        role = cloud_role(environment())
    except ConfigError:
        overrides.OVERRIDES.arguments = before
        raise
    if before not in (None, given):
        log.warning("psrt.init was called again; these arguments count from now on: %s", arguments)
    return role


def _text(argument: Setting, value: Any) -> str:
    """The checked value as text of a variable; a number may be given as text."""
    accept = argument.parse if isinstance(value, str) else argument.accept
    legal = accept(value, overrides.INIT)
    return ",".join(legal) if isinstance(legal, tuple) else str(legal)


def _unknown(name: str) -> ConfigError:
    nearest = difflib.get_close_matches(name, _SETTINGS, n=1, cutoff=0.5)
    known = f"Did you mean {nearest[0]!r}?" if nearest else f"Known: {', '.join(_SETTINGS)}."
    return ConfigError(
        f"psrt.init has no argument {name!r}.",
        code=ErrorCode.CONFIG_UNKNOWN_KEY,
        hint=instead_of(name) or known,
    )
