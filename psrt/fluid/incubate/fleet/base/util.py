"""`fleet.util`: numbers of all workers, put together by a meeting at the servers.

Every worker calls each function as often, between two steps, and before it stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import Array


class MeetingWorkers(Protocol):
    """The fleet whose workers meet."""

    def worker_index(self) -> int: ...
    def barrier_worker(self) -> None: ...
    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]: ...
    def split_files(self, files: Sequence[str]) -> list[str]: ...


_MODES: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min}


class UtilBase:
    """Calls over all workers of one fleet; `comm_world` is "worker", the only one."""

    def __init__(self, fleet: MeetingWorkers) -> None:
        self._fleet = fleet

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Array:
        """Return the sum, maximum or minimum of an array of one shape over all workers, float64.

        Raises `ConfigError` for another mode, `JobError` for arrays of different sizes.
        """
        if mode not in _MODES:
            raise ConfigError(f"all_reduce was given mode {mode!r}, not sum, max or min.")
        array = np.asarray(input, np.float64)
        gathered = self._fleet.gather_numbers(array.reshape(-1).tolist())
        reduced: Array = _MODES[mode](np.array(gathered), axis=0).reshape(array.shape)
        return reduced

    def all_gather(self, input: float, comm_world: str = "worker") -> list[float]:
        """Return the number of each worker."""
        return [numbers[0] for numbers in self._fleet.gather_numbers([float(input)])]

    def barrier(self, comm_world: str = "worker") -> None:
        """Wait for every other worker."""
        self._fleet.barrier_worker()

    def get_file_shard(self, files: Sequence[str]) -> list[str]:
        """Return the files of this worker."""
        return self._fleet.split_files(files)

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Print `message` on one worker."""
        if self._fleet.worker_index() == rank_id:
            print(message)


__all__ = ["UtilBase"]
