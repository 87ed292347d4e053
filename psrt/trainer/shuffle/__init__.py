"""Global shuffle: records exchanged between the trainers of a job.

tally    counts of records, compared by all trainers (pure)
inbox    the rpc handler that receives records
shuffle  the exchange: every record to one trainer, drawn for it
"""

from psrt.trainer.shuffle.shuffle import Seat, exchange
from psrt.trainer.shuffle.tally import total_of

__all__ = ["Seat", "exchange", "total_of"]
