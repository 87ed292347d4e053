"""A cluster of Kubernetes for tests: `fake_kubectl` on the PATH."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

FAKE_KUBECTL = Path(__file__).with_name("fake_kubectl.py")


def fake_cluster(
    directory: Path, monkeypatch: pytest.MonkeyPatch, program: Sequence[str]
) -> dict[str, str]:
    """Make its state in `directory`; pods run `program`. Returns flags of `psrt launch`."""
    (directory / "pods").mkdir(parents=True)
    (directory / "bin").mkdir()
    command = directory / "bin" / "kubectl"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_KUBECTL} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_CLUSTER", str(directory))
    monkeypatch.setenv("FAKE_PROGRAM", json.dumps(list(program)))
    return {"on": "kubernetes", "bring": "*.json", "pserver_args": "--insecure"}
