"""A meeting of trainers by files in a directory of a Hadoop file system."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from psrt.config.load import environment
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.incubate.fleet.utils.hdfs import HDFSClient

POLL_S = 10.0


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Put a file of this trainer and epoch into `ready_path`, and wait for those of the others.

    HADOOP_HOME, FS_NAME and FS_UGI name the file system. Without one nothing is waited for, as in
    Fluid; trainers that have servers meet by `fleet.barrier_worker()`.
    """
    known = environment()
    configs = {"fs.default.name": known.get("FS_NAME"), "hadoop.job.ugi": known.get("FS_UGI")}
    client = HDFSClient(known.get("HADOOP_HOME"), configs)
    client.makedirs(ready_path)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"ready.{epoch}.{fleet.worker_index()}.done"
        file.touch()
        client.upload(ready_path, str(file), overwrite=False, retry_times=0)
    while len(client.ls(ready_path)) % fleet.worker_num():
        time.sleep(POLL_S)


__all__ = ["check_all_trainers_ready"]
