"""Freezes of tables: complete states at an instant, handed out page by page while pushes go on.

In reading order:

    pages           pages: plain arrays, grouped by virtual shard
    frozen_records  records as they were at a freeze, copied before they change
    change_marks    records that changed since a freeze, for deltas of several consumers
    frozen_stripe   one stripe at a freeze
    change_recorder records of the changes of a stripe, for freezes and deltas
    frozen_rows     a sparse table at a freeze: its facts, and the walk over its stripes
    frozen_block    a dense table at a freeze, and blocks made from parts of others
    restoring       checks of pages that a table is restored from
    update_gate     the gate of a table's updates, which a freeze shuts for a moment
    freezable       freezes and restores of tables whose rows are in stripes

Nothing here writes files: a caller keeps pages and facts where it likes.
"""

from psrt.pserver.frozen.change_marks import CUTS
from psrt.pserver.frozen.change_recorder import ChangeRecorder
from psrt.pserver.frozen.freezable import FreezableRows
from psrt.pserver.frozen.frozen_block import BlockState, FrozenBlock, assembled, check_covered
from psrt.pserver.frozen.frozen_records import RecordArray
from psrt.pserver.frozen.frozen_rows import FrozenRows, FrozenTwoParts
from psrt.pserver.frozen.frozen_stripe import FrozenStripe
from psrt.pserver.frozen.pages import Meta, Page, facts_of, ids_of, long_page, page_of, split_page
from psrt.pserver.frozen.restoring import FrozenPages, belongs, restore
from psrt.pserver.frozen.update_gate import UpdateGate

__all__ = ["CUTS", "BlockState", "ChangeRecorder", "FreezableRows", "FrozenBlock", "FrozenPages"]
__all__ += ["FrozenRows", "FrozenStripe", "FrozenTwoParts", "Meta", "Page", "RecordArray"]
__all__ += ["UpdateGate", "assembled", "belongs", "check_covered", "facts_of", "ids_of"]
__all__ += ["long_page", "page_of"]
__all__ += ["restore", "split_page"]
