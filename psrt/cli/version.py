"""`psrt version`: what a bug report needs, one fact per line."""

from __future__ import annotations

import importlib.metadata
import platform

import click
import numpy as np

import psrt


@click.command(epilog="\b\nExample:\n  psrt version")
def version() -> None:
    """Print versions of psrt and its parts.

    Also what the CPU can do: everything a bug report needs.
    """
    for name, value in facts().items():
        click.echo(f"{name:<9} {value}")


def facts() -> dict[str, str]:
    """Name → version or description, in the order they are printed."""
    return {
        "psrt": psrt.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "numpy": np.__version__,
        "blas": _blas(),
        "numba": _version_of("numba"),
        "grpcio": _version_of("grpcio"),
        "protobuf": _version_of("protobuf"),
        "platform": platform.platform(),
        "cpu": ", ".join(_cpu_features()),
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


def _cpu_features() -> list[str]:
    """The vector instruction sets numpy may use here."""
    build = np.show_config(mode="dicts")
    extensions = build["SIMD Extensions"] if build else {}
    return [*extensions.get("baseline", []), *extensions.get("found", [])]
