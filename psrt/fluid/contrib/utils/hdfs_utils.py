"""Trees of files of a Hadoop file system, copied by several trainers or by one."""

from __future__ import annotations

import posixpath
from pathlib import Path

from psrt.fluid.incubate.fleet.utils.hdfs import HDFSClient, each


def multi_download(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    trainer_id: int,
    trainers: int,
    multi_processes: int = 5,
) -> list[str]:
    """Copy one trainer's share of all files below a directory; returns their paths on this host.

    Trainer i of n has every nth file from the ith on, in the order of their names. Files keep
    their paths below `local_path`. `multi_processes` commands run at a time; a command that fails
    is logged.
    """
    files = sorted(client.lsr(hdfs_path))[trainer_id::trainers]
    target = {path: Path(local_path) / posixpath.relpath(path, hdfs_path) for path in files}
    for folder in {path.parent for path in target.values()} | {Path(local_path)}:
        client.make_local_dirs(str(folder))
    each(lambda path: client.get(path, str(target[path].parent)), files, multi_processes)
    return [str(target[path]) for path in files]


def multi_upload(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    multi_processes: int = 5,
    overwrite: bool = False,
    sync: bool = True,
) -> None:
    """Copy all files below a directory of this host; they keep their paths below `hdfs_path`.

    `multi_processes` commands run at a time. `overwrite` deletes a file of the same path before.
    `sync` has no effect: the call returns when all files are copied.
    """
    root = Path(local_path)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    target = {str(p): posixpath.join(hdfs_path, p.relative_to(root).as_posix()) for p in files}
    for folder in sorted({posixpath.dirname(path) for path in target.values()}):
        client.makedirs(folder)

    def send(path: str) -> None:
        if overwrite:
            client.delete(target[path])
        client.put(path, posixpath.dirname(target[path]))

    each(send, list(target), multi_processes)


__all__ = ["HDFSClient", "multi_download", "multi_upload"]
