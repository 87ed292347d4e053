"""The place of one process in a group: its rank, and the address at which all of them meet."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.core.errors import ConfigError


@dataclass(frozen=True)
class GroupSeat:
    """Rank `rank` of `size` processes, which meet at `host:port`.

    Rank 0 listens there, unless a launcher such as torchrun does (`is_hosted`). `attempt` counts
    the restarts of the whole group by its launcher. `device` is the number of the GPU between
    which gradients travel, -1 = they travel between CPUs. Raises `ConfigError` for numbers that no
    group has.
    """

    rank: int
    size: int
    host: str
    port: int
    is_hosted: bool = False
    attempt: int = 0
    device: int = -1

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.rank < self.size:
            raise ConfigError(
                f"rank {self.rank} of {self.size} trainers does not exist.",
                hint="Ranks count from 0; every trainer names the same trainers.",
            )
        if not self.host or not 0 < self.port < 1 << 16:
            raise ConfigError(
                f"the trainers cannot meet at {self.host!r}:{self.port}.",
                hint="Name the endpoint of trainer 0 as host:port, first among all trainers'.",
            )

    @property
    def backend(self) -> str:
        """The transport of torch.distributed."""
        return "gloo" if self.device < 0 else "nccl"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


__all__ = ["GroupSeat"]
