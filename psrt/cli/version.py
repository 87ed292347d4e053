"""`psrt version`: features of psrt on this host, then versions for a bug report, one per line.

The first lines have the form of `paddle version`. A `with_` line describes this process and this
host: kernels are compiled here, so AVX depends on the CPU, not on a build option.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform

import click
import numpy as np

import psrt
from psrt.cli import results
from psrt.cli.host import cpu

_VECTORS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "asimd", "sve")
"""Instruction sets that explain differences in speed between hosts, on x86 and ARM."""


@click.command(epilog="\b\nExamples:\n  psrt version\n  psrt version --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def version(as_json: bool) -> None:
    """Print versions of psrt and its parts.

    First the features that psrt has on this host, then the versions that a bug report needs.
    """
    if as_json:
        results.write(json.dumps({"with": features(), **facts()}, indent=2))
        return
    results.write(f"psrt {psrt.__version__}")
    for name, is_on in features().items():
        results.write(f"    with_{name}: {'ON' if is_on else 'OFF'}")
    for name, value in facts().items():
        results.write(f"{name:<9} {value}")


def features() -> dict[str, bool]:
    """Return the features that psrt uses on this host, by name."""
    has = cpu().features
    return {
        "avx": "avx" in has,
        "avx2": "avx2" in has,
        "avx512": "avx512f" in has,
        "gpu": False,
        "double": True,  # psrt.Executor(..., dtype="float64")
        "python": True,
        "rdma": False,
        "timer": True,  # the profiler: psrt trainer --profile
    }


def facts() -> dict[str, str]:
    """Return versions and descriptions by name, in the order of printing."""
    return {
        "psrt": psrt.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "numpy": np.__version__,
        "blas": _blas(),
        "numba": _version_of("numba"),
        "grpcio": _version_of("grpcio"),
        "protobuf": _version_of("protobuf"),
        "uvloop": _version_of("uvloop"),
        "platform": platform.platform(),
        "cpu": f"{cpu().model}, {os.cpu_count()} processors",
        "vectors": " ".join(name for name in _VECTORS if name in cpu().features) or "unknown",
    }


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    build = np.show_config(mode="dicts")
    blas = build["Build Dependencies"]["blas"] if build else {}
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
