"""`import psrt` stays light: every command pays for it."""

from __future__ import annotations

import subprocess
import sys

import psrt

HEAVY = ("grpc", "numba", "click")


def test_importing_psrt_brings_no_heavy_module() -> None:
    script = f"import sys, psrt; print([m for m in {HEAVY} if m in sys.modules])"

    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )

    assert run.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(hasattr(psrt, name) for name in psrt.__all__)


def test_public_layers_are_those_the_package_lists() -> None:
    functions = {name for name, value in vars(psrt.layers).items() if callable(value)}

    assert functions - {"__getattr__"} == set(psrt.layers.__all__)
