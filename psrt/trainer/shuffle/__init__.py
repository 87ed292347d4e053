"""shuffle: files in reading order.

tally    What trainers count in and after a global shuffle, and what is wrong with it: pure
inbox    Where a trainer keeps the records that others hand it in a global shuffle: an rpc
         handler
shuffle  Global shuffle: every record of every trainer goes to a trainer drawn for it, once
"""

from __future__ import annotations

from psrt.trainer.shuffle.shuffle import Seat, exchange
from psrt.trainer.shuffle.tally import total_of

__all__ = ["Seat", "exchange", "total_of"]
