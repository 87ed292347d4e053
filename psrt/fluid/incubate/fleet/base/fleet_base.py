"""The part of `fleet` that all its kinds share: the role of this process, its share of files."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.errors import ConfigError, ProgramError
from psrt.fluid.incubate.fleet.base.role_maker import RoleMakerBase

__all__ = ["Fleet", "share_of"]


def share_of(files: Sequence[str], index: int, workers: int) -> list[str]:
    """Return the run of files of worker `index`: near-equal, first workers larger."""
    each, more = divmod(len(files), workers)
    first = index * each + min(index, more)
    return list(files[first : first + each + (index < more)])


class Fleet:
    """Roles of a cluster; raises `ProgramError` before the role of this process is known."""

    def __init__(self) -> None:
        self._role: RoleMakerBase | None = None

    def is_worker(self) -> bool:
        """Return whether this process is a trainer."""
        return self._known.is_worker()

    def is_server(self) -> bool:
        """Return whether this process is a pserver."""
        return self._known.is_server()

    def is_first_worker(self) -> bool:
        """Return whether this process is trainer 0."""
        return self._known.is_first_worker()

    def worker_index(self) -> int:
        """Return the number of this trainer, from 0."""
        return self._known.worker_index()

    def server_index(self) -> int:
        """Return the number of this pserver, from 0."""
        return self._known.server_index()

    def worker_num(self) -> int:
        """Return the number of trainers."""
        return self._known.worker_num()

    def server_num(self) -> int:
        """Return the number of pservers."""
        return self._known.server_num()

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Return the trainers' endpoints, if given; `to_string` joins them with commas."""
        endpoints = self._known.get_trainer_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Return the pservers' endpoints; `to_string` joins them with commas."""
        endpoints = self._known.get_pserver_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def split_files(self, files: Sequence[str]) -> list[str]:
        """Return this worker's share of `files`: contiguous and near-equal, first workers larger.

        A server, which reads none, gets the share of the worker of its number, if there is one.
        Raises `ConfigError` for a string.
        """
        if isinstance(files, str):
            raise ConfigError(f"split_files was given the string {files!r}, expected a list.")
        return share_of(files, min(self.worker_index(), self.worker_num()), self.worker_num())

    get_file_shard = split_files

    @property
    def _known(self) -> RoleMakerBase:
        if self._role is None:
            raise ProgramError("fleet was used before fleet.init(role_maker).")
        return self._role

    def _refuse_server(self, name: str) -> None:
        if self.is_server():
            raise ProgramError(f"fleet.{name} is for workers, and this process is a server.")

    def _refuse_worker(self, name: str) -> None:
        if self.is_worker():
            raise ProgramError(f"fleet.{name} is for servers, and this process is a worker.")
