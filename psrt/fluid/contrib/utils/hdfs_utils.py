"""The path at which programs of Fluid import `HDFSClient`."""

from __future__ import annotations

from psrt.fluid.incubate.fleet.utils.hdfs import HDFSClient

__all__ = ["HDFSClient"]
