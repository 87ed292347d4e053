"""`paddle.version`: the newest version whose Fluid psrt has."""

from __future__ import annotations

from psrt.fluid.names import FLUID_VERSION

full_version = FLUID_VERSION
major, minor, patch = full_version.split(".")
rc, istaged, with_mkl = "0", True, "OFF"


def show() -> None:
    """Print the version."""
    print("full_version:", full_version)


def mkl() -> str:
    """Return "OFF": kernels are psrt's own."""
    return with_mkl


__all__ = ["full_version", "istaged", "major", "minor", "mkl", "patch", "rc", "show", "with_mkl"]
