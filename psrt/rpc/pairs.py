"""The two pservers of each part: its home, which serves it in even epochs, and another one.

Trainers and pservers compute them from the plan, so no process has to announce them. An epoch is
the number of failovers of a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from psrt.core.errors import ConfigError
from psrt.rpc.hosts import split_endpoint


class PartAddress(NamedTuple):
    """A pserver that may serve a part: its endpoint, its name for the part in headers, and the
    epoch in which it does."""

    endpoint: str
    header_part: int
    epoch: int = 0


class Pair(NamedTuple):
    """The home of a part, and the pserver that backs it up at first."""

    part: int
    home: str
    other: str

    def serving(self, epoch: int) -> PartAddress:
        """The pserver that serves the part in `epoch`."""
        endpoint = self.other if epoch % 2 else self.home
        return PartAddress(endpoint, self.part + 1 if epoch else 0, epoch)

    def backup(self, epoch: int) -> str:
        """The endpoint of the pserver that keeps the copy in `epoch`."""
        return self.home if epoch % 2 else self.other


def pair_of(endpoints: Sequence[str], part: int) -> Pair:
    """The pair of a part: its home, and the next pserver on another host, else the next one.

    Raises `ConfigError` if the job has a single pserver.
    """
    if len(endpoints) < 2:
        raise ConfigError(
            'durability = "replica" needs two pservers or more: the backup of a pserver is another '
            "one. This job has one, and nothing was trained.",
            hint="Start a second pserver, on another host if you can, or choose another "
            "durability in [job].",
        )
    home = endpoints[part]
    others = [*endpoints[part + 1 :], *endpoints[:part]]
    elsewhere = [each for each in others if _host(each) != _host(home)]
    return Pair(part, home, (elsewhere or others)[0])


def parts_paired_with(endpoint: str, endpoints: Sequence[str]) -> set[int]:
    """The parts that one of `endpoints`, those of a plan, is the home or the other pserver of."""
    pairs = (pair_of(endpoints, part) for part in range(len(endpoints)))
    return {pair.part for pair in pairs if endpoint in (pair.home, pair.other)}


def _host(endpoint: str) -> str:
    return split_endpoint(endpoint)[0]
