"""Garbage collection of test processes: what collecting tests makes is never looked at again.

The modules and tests of a whole run are millions of objects that live to the end. Without this each
full collection takes a second, and some tests ask for several.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def cheap_collections() -> None:
    """Let full collections visit only what tests of one module make: they ask for many."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
