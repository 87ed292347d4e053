"""The training runtime, and the executors that connect it to pservers.

completion        waiting until every other trainer has completed
shrinking         eviction of rows on all pservers at the request of a trainer
cluster           one trainer's side of the cluster: plan, clients, communicator
local_parameters  parameters that a trainer trains itself: Geo, and without pservers
process           identity, BLAS threads, memory and kernels of a trainer's process
numerics          steps whose loss is not finite: the setting on_nan
run_options       replicas, passes, and the place of updates
training_run      the training step, and everything it passes through
single_trainer    training without pservers
lifetime          raises the original error on use after failure
connected_calls   calls of a connected executor between two steps
watched_scripts   the pages of a script
connected         `ConnectedExecutor`, for users' own loops
"""

from psrt.trainer.training.cluster import ConnectedCluster, cluster_of
from psrt.trainer.training.completion import CompletionWait, await_others, waiting_turn
from psrt.trainer.training.connected import ConnectedExecutor, names_of
from psrt.trainer.training.local_parameters import fill_untrained
from psrt.trainer.training.numerics import Numerics
from psrt.trainer.training.process import Say, assume_identity, prepared_process
from psrt.trainer.training.run_options import RunOptions, build_strategy
from psrt.trainer.training.shrinking import Shrunk
from psrt.trainer.training.single_trainer import SingleTrainer
from psrt.trainer.training.training_run import TrainingRun

__all__ = ["CompletionWait", "ConnectedCluster", "ConnectedExecutor", "Numerics", "RunOptions"]
__all__ += ["Say", "Shrunk", "SingleTrainer", "TrainingRun", "assume_identity", "await_others"]
__all__ += ["build_strategy", "cluster_of", "fill_untrained", "names_of", "prepared_process"]
__all__ += ["waiting_turn"]
