"""Pages of the documentation, as text."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name: str) -> str:
    """Return the text of a page, such as `page("reference/layers.md")`."""
    return (DOCS / name).read_text(encoding="utf-8")
