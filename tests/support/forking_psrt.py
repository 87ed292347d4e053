"""`psrt launch` for commands of pages: its children are forked from it, see `forked_children`."""

from __future__ import annotations

import sys

import tests.support.preloaded  # noqa: F401
from tests.support.forked import run_to_end
from tests.support.forked_children import fork_children

if __name__ == "__main__":
    fork_children(run_to_end)
    sys.exit(run_to_end(sys.argv[1:]))
