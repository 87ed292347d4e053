"""Pages of the documentation, as text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


PSRT = f"""psrt() {{
  local module=psrt
  if [ "$1" = launch ]; then module=tests.support.forking_psrt; fi
  "{sys.executable}" -m $module "$@"
}}"""
"""The command as a function of a shell; launches fork their children."""


def page(name: str) -> str:
    """Return the text of a page, such as `page("reference/layers.md")`."""
    return (DOCS / name).read_text(encoding="utf-8")


def run_in(folder: Path, commands: str) -> str:
    """Run shell commands with this interpreter's `python` and `psrt`; return what they print."""
    own = f'python() {{ "{sys.executable}" "$@"; }}; {PSRT}'
    done = subprocess.run(
        ["bash", "-ec", f"{own}\n{commands}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, f"$ {commands}\n{done.stdout}{done.stderr}"
    return done.stdout
