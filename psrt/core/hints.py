"""Hints of errors about unknown names."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return `Did you mean …?` with the nearest known name, `otherwise` if none is near.

    Upper and lower case count as equal.
    """
    by_letters = {each.casefold(): each for each in reversed(list(known))}
    near = difflib.get_close_matches(str(name).casefold(), by_letters, 1)
    return f"Did you mean {by_letters[near[0]]}?" if near else otherwise
