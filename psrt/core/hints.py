"""Hints of errors about unknown names."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return `Did you mean …?` with the nearest known name, `otherwise` if none is near."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    return f"Did you mean {near[0]}?" if near else otherwise
