"""Role makers: the role of this process, and the other processes of the job.

A role maker reads a `ClusterRole` on first use, or when `generate_role` is called:
`PaddleCloudRoleMaker` from the variables of a launcher, `MPISymetricRoleMaker` from those of
`mpirun` or `srun` (no mpi4py: psrt needs ranks, not messages), `UserDefinedRoleMaker` from its
arguments. An error names the variable that is missing; docs/reference/fleet.md lists them.
Those of collective training have workers only. `GeneralRoleMaker` raises `ConfigError`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import cached_property
from typing import NoReturn

from psrt.config.group_roles import collective_role
from psrt.config.load import environment
from psrt.config.roles import ClusterRole, cloud_role, mpi_role
from psrt.core.errors import ConfigError
from psrt.fluid.names import missing

__all__ = ["GeneralRoleMaker", "MPIRoleMaker", "MPISymetricRoleMaker", "PaddleCloudRoleMaker"]
__all__ += ["Role", "RoleMakerBase", "UserDefinedCollectiveRoleMaker", "UserDefinedRoleMaker"]


class Role(enum.IntEnum):
    """Roles: Fluid calls a trainer a worker, a pserver a server."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """Base of role makers; `_find_role` is where they differ."""

    @cached_property
    def cluster_role(self) -> ClusterRole:
        return self._find_role()

    def generate_role(self) -> None:
        """Determine the role now, so that its errors are raised here."""
        assert self.cluster_role

    def is_worker(self) -> bool:
        return not self.cluster_role.is_pserver

    def is_server(self) -> bool:
        return self.cluster_role.is_pserver

    def is_first_worker(self) -> bool:
        return self.is_worker() and self.cluster_role.index == 0

    def role_id(self) -> int:
        """Return the number of this process among those of its role, from 0."""
        return self.cluster_role.index

    worker_index = server_index = role_id

    def worker_num(self) -> int:
        return self.cluster_role.trainers

    def server_num(self) -> int:
        return len(self.cluster_role.endpoints)

    def get_trainer_endpoints(self) -> list[str]:
        """Return the trainers' addresses, if given; a global shuffle needs them."""
        return list(self.cluster_role.trainer_endpoints)

    def get_pserver_endpoints(self) -> list[str]:
        return list(self.cluster_role.endpoints)

    def to_string(self) -> str:
        kind = "server" if self.is_server() else "worker"
        endpoints = ",".join(self.get_pserver_endpoints())
        return f"{kind} {self.role_id()}, {self.worker_num()} workers, servers {endpoints}"

    def _find_role(self) -> ClusterRole:
        raise NotImplementedError


class PaddleCloudRoleMaker(RoleMakerBase):
    """Role from the launcher's variables, `TRAINING_ROLE` and its companions.

    With `is_collective` there are no pservers, and `PADDLE_TRAINER_ENDPOINTS` names the workers;
    the variables of torchrun, MPI and Slurm do as well.
    """

    def __init__(self, is_collective: bool = False) -> None:
        self._is_collective = is_collective

    def _find_role(self) -> ClusterRole:
        return collective_role(environment()) if self._is_collective else cloud_role(environment())


class MPISymetricRoleMaker(RoleMakerBase):
    """Two processes per host, started by MPI or Slurm: even ranks serve, odd ranks work."""

    def _find_role(self) -> ClusterRole:
        return mpi_role(environment())


MPIRoleMaker = MPISymetricRoleMaker


class UserDefinedRoleMaker(RoleMakerBase):
    """Role from arguments: `current_id` counts within the role, from 0.

    `worker_num` is the number of workers, or else the length of `worker_endpoints`. Raises
    `ConfigError` for a value that is no role, and for endpoints in one string.
    """

    def __init__(
        self,
        current_id: int = 0,
        role: Role = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: Sequence[str] | None = None,
        worker_endpoints: Sequence[str] = (),
    ) -> None:
        if role not in (Role.WORKER, Role.SERVER):
            raise ConfigError(
                f"role is {role!r}, which is not a role.",
                hint="Use role_maker.Role.WORKER or role_maker.Role.SERVER.",
            )
        if isinstance(server_endpoints, str):
            raise ConfigError(
                f"server_endpoints is the string {server_endpoints!r}, expected a list.",
                hint=f'Write server_endpoints="{server_endpoints}".split(",").',
            )
        self._given = ClusterRole(
            is_pserver=role == Role.SERVER,
            index=current_id,
            trainers=worker_num or len(worker_endpoints),
            endpoints=tuple(server_endpoints or ()),
            trainer_endpoints=tuple(worker_endpoints),
        )

    def _find_role(self) -> ClusterRole:
        return self._given


class GeneralRoleMaker(RoleMakerBase):
    """Raises `ConfigError`: psrt has no store for workers to meet at."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise ConfigError(
            "GeneralRoleMaker has workers meet at a store of HDFS or HTTP, which psrt.fluid does "
            "not have.",
            hint="Workers of psrt meet at the servers: use PaddleCloudRoleMaker(), which reads "
            "the variables of the launcher.",
        )


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """Worker `current_id` of those at `worker_endpoints`, without pservers.

    Raises `ConfigError` for endpoints in one string.
    """

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        if isinstance(worker_endpoints, str):
            raise ConfigError(
                f"worker_endpoints is the string {worker_endpoints!r}, expected a list.",
                hint=f'Write worker_endpoints="{worker_endpoints}".split(",").',
            )
        at = tuple(worker_endpoints or ())
        self._given = ClusterRole(False, current_id, len(at), (), at, is_collective=True)

    def _find_role(self) -> ClusterRole:
        return self._given


def __getattr__(name: str) -> NoReturn:
    raise missing("role_maker", name, __all__)
