"""Rows that come and go on a pserver, so that cuts contain rows that later ones must not have.

Their ids are negative; the ledger of pushes leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psrt.core.errors import TableError
from psrt.pserver.tables import TableRegistry
from tests.sim.ledger import UNIT, WIDTH
from tests.sim.world import World

IDS, VISITS, PAUSE_S = 8, 12, 0.02


def visit(world: World, tables: Callable[[], TableRegistry]) -> None:
    """Make some rows and drop them, one after the other, at random times."""
    for _ in range(VISITS):
        world.sleep(world.random.uniform(0, PAUSE_S))
        row = np.array([-1 - world.random.randrange(IDS)], np.int64)
        try:
            table = tables().sparse("emb")
            table.apply(table.route(row), np.full((1, WIDTH), -UNIT, np.float32), 1.0)
        except TableError:  # no table yet, or the row of another pserver
            continue
        world.sleep(world.random.uniform(0, PAUSE_S))
        table.sweep(0, 1 << 20, lambda rows: (rows.view(np.int64)[:, 1] < 0).astype(np.uint8))
