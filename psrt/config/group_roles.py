"""The place of a process among trainers without pservers, from the variables of its launcher.

Launchers of PaddlePaddle name every trainer's endpoint (`PADDLE_TRAINER_ENDPOINTS`), torchrun names
the address at which all meet (`MASTER_ADDR`, `MASTER_PORT`), and MPI and Slurm name numbers alone:
then the trainers of one host meet there, and those of several need `MASTER_ADDR`. Pure functions of
a mapping; an empty variable counts as unset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psrt.config.older_variables import DEFAULT_PORT, Environment, listed, port_of, with_derived
from psrt.config.roles import MPI_VARIABLES, ClusterRole
from psrt.core.errors import ConfigError

_NUMBERS = (("RANK", "WORLD_SIZE"), *MPI_VARIABLES)
_HERE = "127.0.0.1"


def group_flags(environ: Environment, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given` flags of a trainer with those that its launcher decides.

    These are `trainers`, `trainer_id` and `trainer_endpoints`; a given one that is not None wins.
    Raises `ConfigError` for trainers of several hosts without an address.
    """
    known = with_derived(environ)
    rank, size = _numbers(known)
    endpoints = known.get("PADDLE_TRAINER_ENDPOINTS", "")
    counted = endpoints.count(",") + 1 if endpoints else size
    found = {
        "trainer_id": known.get("PADDLE_TRAINER_ID") or rank,
        "trainers": known.get("PADDLE_TRAINERS_NUM") or counted,
    }
    chosen = {**given}
    for name, value in found.items():
        if value and chosen.get(name) is None:
            chosen[name] = int(value)
    if not chosen.get("trainer_endpoints"):
        several = int(chosen.get("trainers") or 1) > 1
        chosen["trainer_endpoints"] = endpoints or (_address(known) if several else "")
    return chosen


def collective_role(environ: Environment) -> ClusterRole:
    """Return the role of a trainer without pservers; raises `ConfigError` if variables lack."""
    flags = group_flags(environ, {})
    endpoints = listed(flags["trainer_endpoints"])
    number, trainers = flags.get("trainer_id", 0), flags.get("trainers", 1)
    return ClusterRole(False, number, trainers, (), endpoints, is_collective=True)


def selected_device(environ: Environment) -> int:
    """Return the number of the GPU that a launcher chose for this process, -1 = none."""
    text = environ.get("FLAGS_selected_gpus", "")
    return int(text) if text.isdecimal() else -1


def is_hosted(environ: Environment, address: str) -> bool:
    """Return True if the launcher itself listens at `address`, as torchrun does."""
    named = f"{environ.get('MASTER_ADDR', '')}:{environ.get('MASTER_PORT', '')}"
    return environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and address == named


def attempt(environ: Environment) -> int:
    """Return the number of restarts of the whole group by torchrun."""
    text = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return int(text) if text.isdecimal() else 0


def _numbers(environ: Environment) -> tuple[str, str]:
    """Rank and size from the first launcher that has set both."""
    for rank, size in _NUMBERS:
        if environ.get(rank) and environ.get(size):
            return environ[rank], environ[size]
    return "", ""


def _address(environ: Environment) -> str:
    if host := environ.get("MASTER_ADDR", ""):
        return f"{host}:{port_of(environ, 'MASTER_PORT', DEFAULT_PORT)}"
    if _on_one_host(environ):
        return f"{_HERE}:{port_of(environ, 'MASTER_PORT', DEFAULT_PORT)}"
    raise ConfigError(
        "the trainers do not know where to meet: no variable names an endpoint.",
        hint="Set PADDLE_TRAINER_ENDPOINTS=HOST:PORT,HOST:PORT, or MASTER_ADDR to the host of "
        "trainer 0, the same in every process; psrt launch and torchrun do that by themselves.",
    )


def _on_one_host(environ: Environment) -> bool:
    size, here = (environ.get(f"OMPI_COMM_WORLD_{part}SIZE", "") for part in ("", "LOCAL_"))
    nodes = environ.get("SLURM_STEP_NUM_NODES") or environ.get("SLURM_NNODES")
    return (bool(size) and size == here) or nodes == "1"
