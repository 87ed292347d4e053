"""Last lines of log files, for the messages of tests that fail."""

from __future__ import annotations

from pathlib import Path

LAST_LINES = 40


def tails(*places: Path) -> str:
    """The last lines of each file, and of the logs in each directory."""
    files = [f for place in places for f in (sorted(place.rglob("*.log")) or [place])]
    return "".join(f"\nlast lines of {file}:\n{_tail(file)}" for file in files if file.is_file())


def _tail(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return "".join(f"    {line}\n" for line in lines)
