"""collectives: trainers without pservers, which reduce gradients among themselves.

seats    the seat of this process, from settings or from what a launcher exports
own      the parameters of a trainer, which updates all of them
cluster  the trainers of a group, in place of pservers
"""

from psrt.trainer.collectives.cluster import CollectiveCluster
from psrt.trainer.collectives.seats import seat_of

__all__ = ["CollectiveCluster", "seat_of"]
