"""Files of a Hadoop file system, by the command `hadoop fs` that Fluid calls.

psrt has no client of its own: files by URL are read and written by `psrt-cluster[fsspec]`.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from psrt.fluid.incubate.fleet.base.fleet_base import share_of

log = logging.getLogger("psrt.fluid")

RETRY_S = 3.0
"""Seconds between two tries of a command."""

_COLUMNS = 8
"""Columns of a line of `-ls`: permissions, replicas, owner, group, size, date, time, path."""


class HDFSClient:
    """`HADOOP_HOME/bin/hadoop fs`, with `configs` as -D options.

    A command that fails is logged with its output; methods then return False, or nothing.
    """

    def __init__(
        self, hadoop_home: str | None, configs: Mapping[str, object] | None = None
    ) -> None:
        options = [f"-D{name}={value}" for name, value in (configs or {}).items()]
        self.pre_commands = [f"{hadoop_home}/bin/hadoop", "fs", *options]

    def cat(self, hdfs_path: str) -> str:
        """Return the text of a file, "" if there is none."""
        done = self._run("-cat", hdfs_path, retry_times=1) if self.is_file(hdfs_path) else None
        return "" if done is None else done.strip()

    def is_exist(self, hdfs_path: str) -> bool:
        """Return whether a file or directory has this path."""
        return self._test("-e", hdfs_path)

    def is_dir(self, hdfs_path: str) -> bool:
        """Return whether a directory has this path."""
        return self.is_exist(hdfs_path) and self._test("-d", hdfs_path)

    def is_file(self, hdfs_path: str) -> bool:
        """Return whether a file has this path."""
        return self.is_exist(hdfs_path) and not self._test("-d", hdfs_path)

    def delete(self, hdfs_path: str) -> bool:
        """Delete a file, or a directory with all below it; True, too, without it."""
        if not self.is_exist(hdfs_path):
            return True
        flag = "-rmr" if self._test("-d", hdfs_path) else "-rm"
        return self._run(flag, hdfs_path, retry_times=0) is not None

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """Give a file or directory another path; False where one exists without `overwrite`."""
        if self.is_exist(hdfs_dst_path):
            if not overwrite:
                log.error("%s was not renamed: %s exists.", hdfs_src_path, hdfs_dst_path)
                return False
            self.delete(hdfs_dst_path)
        return self._run("-mv", hdfs_src_path, hdfs_dst_path, retry_times=1) is not None

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Make a directory of this host, and those above it."""
        Path(local_path).mkdir(parents=True, exist_ok=True)

    def makedirs(self, hdfs_path: str) -> bool:
        """Make a directory, and those above it; one that exists stays."""
        return self._run("-mkdir", "-p", hdfs_path, retry_times=1) is not None

    def ls(self, hdfs_path: str) -> list[str]:
        """Return the paths in a directory."""
        return [words[-1] for words in self._listed("-ls", hdfs_path)]

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:
        """Return the paths of all files below a directory, without `excludes`."""
        files = (words for words in self._listed("-lsr", hdfs_path) if words[0][0] != "d")
        return [words[-1] for words in files if words[-1] not in excludes]

    @staticmethod
    def split_files(files: Sequence[str], trainer_id: int, trainers: int) -> list[str]:
        """Return the files of one trainer: a near-equal run, larger ones first."""
        return share_of(files, trainer_id, trainers)

    def download(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> list[str]:
        """Copy the files of a directory to this host; returns all files there.

        `multi_processes` commands run at a time. `overwrite` deletes older files before.
        """
        self.make_local_dirs(local_path)

        def fetch(path: str) -> None:
            if overwrite:
                (Path(local_path) / Path(path).name).unlink(missing_ok=True)
            self.get(path, local_path, retry_times)

        each(fetch, self.ls(hdfs_path), multi_processes)
        return [str(path) for path in sorted(Path(local_path).rglob("*")) if path.is_file()]

    def upload(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> None:
        """Copy a file of this host, or those in a directory, into a directory.

        `multi_processes` commands run at a time. `overwrite` empties the directory before.
        """
        source = Path(local_path)
        files = sorted(source.iterdir()) if source.is_dir() else [source] if source.exists() else []
        if files and overwrite and self.is_exist(hdfs_path):
            self.delete(hdfs_path)
            self.makedirs(hdfs_path)

        def send(path: str) -> None:
            self.put(path, hdfs_path, retry_times)

        each(send, [str(file) for file in files], multi_processes)

    def upload_dir(self, dest_dir: str, local_dir: str, overwrite: bool = False) -> bool:
        """Copy a directory of this host into a directory."""
        target = f"{dest_dir.rstrip('/')}/{Path(local_dir).name}"
        if overwrite:
            self.delete(target)
        self.makedirs(dest_dir)
        return self._run("-put", local_dir.rstrip("/"), dest_dir, retry_times=5) is not None

    def get(self, hdfs_path: str, local_path: str, retry_times: int = 5) -> bool:
        """Copy a file into a directory of this host; returns whether it was copied."""
        return self._run("-get", hdfs_path, local_path, retry_times=retry_times) is not None

    def put(self, local_path: str, hdfs_path: str, retry_times: int = 5) -> bool:
        """Copy a file of this host into a directory; returns whether it was copied."""
        return self._run("-put", local_path, hdfs_path, retry_times=retry_times) is not None

    def _test(self, flag: str, path: str) -> bool:
        return self._run("-test", flag, path, retry_times=0, is_quiet=True) is not None

    def _listed(self, flag: str, path: str) -> list[list[str]]:
        text = (self.is_exist(path) and self._run(flag, path, retry_times=1)) or ""
        lines = (line.split(maxsplit=_COLUMNS - 1) for line in text.splitlines())
        return [words for words in lines if len(words) == _COLUMNS]

    def _run(self, *words: str, retry_times: int, is_quiet: bool = False) -> str | None:
        """Run a command; returns its output, None if it failed `retry_times` + 1 times."""
        command = [*self.pre_commands, *words]
        for number in range(retry_times + 1):
            if number:
                time.sleep(RETRY_S)
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                log.error("%s was not run: %s.", command[0], error)
                return None
            if done.returncode == 0:
                return done.stdout
            if not is_quiet:
                log.error("%s ended with %s: %s", command, done.returncode, done.stderr.strip())
        return None


def each(work: Callable[[str], object], paths: Sequence[str], at_a_time: int) -> None:
    """Do `work` for every path, so many at a time."""
    with ThreadPoolExecutor(max(1, at_a_time), "hdfs") as pool:
        list(pool.map(work, paths))


__all__ = ["HDFSClient", "each"]
