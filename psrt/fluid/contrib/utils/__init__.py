"""`fluid.contrib.utils`: files of a Hadoop file system."""

from __future__ import annotations

from psrt.fluid.incubate.fleet.utils.hdfs import HDFSClient
from psrt.fluid.names import missing

__all__ = ["HDFSClient"]


def __getattr__(name: str) -> object:
    raise missing("fluid.contrib.utils", name, __all__)
