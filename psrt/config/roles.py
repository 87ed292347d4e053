"""The role of a process in a cluster, from the environment variables of its launcher.

Pure functions of a mapping; older variables are translated by `older_variables`. `cloud_role` reads
the role from a PaddlePaddle launcher, `mpi_role` from the rank in an MPI or Slurm job, which every
`mpirun` and `srun` exports. No MPI library is needed, since pservers and trainers use psrt's own
carriers. An empty variable counts as unset. Errors name the missing or wrong variable and its legal
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from psrt.config.older_variables import Environment, endpoints_on, listed, port_of, with_derived
from psrt.core.errors import ConfigError

TRAINER, PSERVER = "TRAINER", "PSERVER"
MPI_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)

_HINTS = {
    "TRAINING_ROLE": "Set it to TRAINER or PSERVER.",
    "PADDLE_PSERVERS_IP_PORT_LIST": "Set it to the endpoints of all pservers, the same list in "
    "every process: PADDLE_PSERVERS_IP_PORT_LIST=10.0.0.1:6170,10.0.0.2:6170.",
    "PADDLE_TRAINERS_NUM": "Set it to the number of trainers, the same in every process.",
    "PADDLE_TRAINER_ID": "Set it to the number of this trainer; the first one is 0.",
    "POD_IP": "Set POD_IP and PADDLE_PORT to the own address of a pserver; together they are one "
    "of PADDLE_PSERVERS_IP_PORT_LIST.",
    "PADDLE_PORT": "Set it to the port of this pserver, as in PADDLE_PSERVERS_IP_PORT_LIST.",
}


class RoleError(ConfigError, ValueError):
    """A launcher's variable names no role."""


@dataclass(frozen=True)
class ClusterRole:
    """One process of a cluster.

    `index` counts from 0 within trainers or pservers, for a pserver in the order of `endpoints`. A
    collective cluster has no pservers, and endpoints of all trainers, or of the first. Raises
    `ConfigError` for an index out of range, endpoints that are not distinct `host:port`, and values
    that are not integers.
    """

    is_pserver: bool
    index: int
    trainers: int
    endpoints: tuple[str, ...]
    trainer_endpoints: tuple[str, ...] = ()
    is_collective: bool = False

    def __post_init__(self) -> None:
        _check_whole("the number of this process", self.index)
        _check_whole("the number of trainers", self.trainers)
        if self.trainers < 1:
            raise ConfigError(f"a cluster of {self.trainers} trainers cannot train.")
        if self.is_collective:
            _check_group(self.trainers, self.trainer_endpoints)
        else:
            check_endpoints(self.endpoints)
        kind, count = self._kind()
        if not 0 <= self.index < count:
            raise ConfigError(
                f"this process is {kind} {self.index}, but the cluster has {count}.",
                hint=f"The first {kind} is 0, the last one here is {count - 1}.",
            )

    @property
    def current_endpoint(self) -> str:
        """The endpoint of this pserver; empty for a trainer."""
        return self.endpoints[self.index] if self.is_pserver else ""

    def _kind(self) -> tuple[str, int]:
        return ("pserver", len(self.endpoints)) if self.is_pserver else ("trainer", self.trainers)


def cloud_role(environ: Environment) -> ClusterRole:
    """Return the role given by `TRAINING_ROLE` and related variables; raises `ConfigError`."""
    known = with_derived(environ)
    role = _needed(known, "TRAINING_ROLE")
    if role not in (TRAINER, PSERVER):
        raise RoleError(f"TRAINING_ROLE is {role!r}.", hint=_HINTS["TRAINING_ROLE"])
    endpoints = listed(_needed(known, "PADDLE_PSERVERS_IP_PORT_LIST"))
    trainers = _count(known, "PADDLE_TRAINERS_NUM")
    at = listed(known.get("PADDLE_TRAINER_ENDPOINTS", ""))
    if role == TRAINER:
        return ClusterRole(False, _count(known, "PADDLE_TRAINER_ID"), trainers, endpoints, at)
    return ClusterRole(True, _pserver_index(known, endpoints), trainers, endpoints, at)


def contradiction(environ: Environment, role: str) -> str:
    """Return a sentence if TRAINING_ROLE names another role than `role`, else an empty text."""
    named = environ.get("TRAINING_ROLE") or environ.get("PADDLE_TRAINING_ROLE") or role
    return f"TRAINING_ROLE is {named}, but this is the command of a {role}" if named != role else ""


def mpi_role(environ: Environment) -> ClusterRole:
    """Return the role of an MPI rank: rank 2i is pserver i, rank 2i + 1 trainer i.

    Endpoints are PADDLE_PSERVERS_IP_PORT_LIST, or made of PADDLE_PSERVER_IPS (a host per pserver,
    or one for all) and PADDLE_PSERVER_PORT. A job whose ranks all run on one host, by the variables
    of Open MPI, needs neither. Raises `ConfigError`.
    """
    rank, size = mpi_rank(environ)
    if size < 2 or size % 2:
        raise ConfigError(
            f"{size} MPI ranks cannot be halved into pservers and trainers.",
            hint="Start an even number of processes: even ranks serve, odd ranks train.",
        )
    return ClusterRole(rank % 2 == 0, rank // 2, size // 2, _mpi_endpoints(environ, size // 2))


def mpi_rank(environ: Environment) -> tuple[int, int]:
    """Return rank and number of ranks, from the first launcher of `MPI_VARIABLES` that set both."""
    for rank, size in MPI_VARIABLES:
        if environ.get(rank) and environ.get(size):
            return _count(environ, rank), _count(environ, size)
    names = ", or ".join(" and ".join(pair) for pair in MPI_VARIABLES)
    raise ConfigError(
        "Can not find the rank of this process in the environment.",
        hint=f"Start it by mpirun or srun, which set {names}.",
    )


def _check_whole(what: str, number: object) -> None:
    if not isinstance(number, SupportsIndex):
        raise ConfigError(
            f"{what} is {number!r}, expected an integer.",
            hint="What a variable of the environment holds is a text: write int(…) around it.",
        )


def _check_group(trainers: int, endpoints: Sequence[str]) -> None:
    """Raise `ConfigError` unless there is a distinct `host:port` for each trainer, or the first."""
    if len(endpoints) not in (1, trainers):
        raise ConfigError(
            f"{len(endpoints)} endpoints were named for {trainers} trainers without pservers.",
            hint="Set PADDLE_TRAINER_ENDPOINTS to the endpoints of all trainers, the same list in "
            "every process: PADDLE_TRAINER_ENDPOINTS=10.0.0.1:6170,10.0.0.2:6170.",
        )
    check_endpoints(endpoints)


def check_endpoints(endpoints: Sequence[str]) -> None:
    """Raise `ConfigError` for a list that is not distinct `host:port`."""
    if not endpoints:
        raise ConfigError("no pservers were named.", hint=_HINTS["PADDLE_PSERVERS_IP_PORT_LIST"])
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not (host and port.isdecimal()):
            raise ConfigError(
                f"the endpoint {endpoint!r} is not host:port.",
                hint="Write 10.0.0.1:6170,10.0.0.2:6170.",
            )
        if endpoints.count(endpoint) > 1:
            raise ConfigError(
                f"the endpoint {endpoint} is listed more than once.",
                hint="Give each pserver an address of its own.",
            )


def _pserver_index(environ: Environment, endpoints: Sequence[str]) -> int:
    if environ.get("PADDLE_PSERVER_ID"):
        return _count(environ, "PADDLE_PSERVER_ID")
    own = f"{_needed(environ, 'POD_IP')}:{_needed(environ, 'PADDLE_PORT')}"
    if own not in endpoints:
        raise ConfigError(
            f"this pserver is {own}, which is not among the pservers {','.join(endpoints)}.",
            hint=_HINTS["POD_IP"],
        )
    return endpoints.index(own)


def _mpi_endpoints(environ: Environment, pservers: int) -> tuple[str, ...]:
    """The endpoints of all pservers; raises `ConfigError` for another number of them."""
    hosts = _mpi_hosts(environ, pservers)
    named = listed(environ.get("PADDLE_PSERVERS_IP_PORT_LIST", ""))
    endpoints = named or endpoints_on(hosts, port_of(environ, "PADDLE_PSERVER_PORT"))
    if not endpoints:
        endpoints = listed(_needed(environ, "PADDLE_PSERVERS_IP_PORT_LIST"))
    if len(endpoints) != pservers:
        raise ConfigError(
            f"{2 * pservers} MPI ranks are {pservers} pservers, but {len(endpoints)} are named: "
            f"{','.join(endpoints)}.",
            hint="Name one endpoint for every even rank.",
        )
    return endpoints


def _mpi_hosts(environ: Environment, pservers: int) -> tuple[str, ...]:
    hosts = listed(environ.get("PADDLE_PSERVER_IPS", ""))
    if not hosts and _all_on_one_host(environ):
        hosts = ("127.0.0.1",)
    return hosts * pservers if len(hosts) == 1 else hosts


def _all_on_one_host(environ: Environment) -> bool:
    size, here = (environ.get(f"OMPI_COMM_WORLD_{part}SIZE", "") for part in ("", "LOCAL_"))
    return bool(size) and size == here


def _needed(environ: Environment, name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise ConfigError(f"Can not find {name} in the environment.", hint=_HINTS.get(name, ""))
    return value


def _count(environ: Environment, name: str) -> int:
    text = _needed(environ, name)
    if not text.isdecimal():
        raise ConfigError(f"{name} is {text!r}, expected a number.", hint=_HINTS.get(name, ""))
    return int(text)
