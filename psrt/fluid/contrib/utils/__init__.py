"""`fluid.contrib.utils`: files of a Hadoop file system."""

from __future__ import annotations

from psrt.fluid.contrib.utils.hdfs_utils import HDFSClient, multi_download, multi_upload
from psrt.fluid.names import missing

__all__ = ["HDFSClient", "multi_download", "multi_upload"]


def __getattr__(name: str) -> object:
    raise missing("fluid.contrib.utils", name, __all__)
