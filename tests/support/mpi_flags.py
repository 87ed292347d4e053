"""Flags of `psrt launch --on mpi` for the Open MPI or MPICH that is installed here."""

from __future__ import annotations

import shutil

import pytest

_OPEN_MPI = "--allow-run-as-root --oversubscribe --mca oob_tcp_if_include lo"


def mpi_flags(name: str = "mpirun.openmpi") -> dict[str, str]:
    """Return the flags for a command of Debian's, `mpirun.openmpi` or `mpirun.mpich`."""
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    return {"on": "mpi", "mpirun": f"{name} {_OPEN_MPI}" if "openmpi" in name else name}
