"""The training runtime and its shells.

step_values       counters and sums that outlive a step, kept for cuts
completion        waiting until every other trainer has completed
shrinking         eviction of rows on all pservers at the request of a trainer
cluster           one trainer's side of the cluster: plan, clients, communicator
signals           SIGTERM and Ctrl-C, handled at the end of a step
local_parameters  parameters that a trainer trains itself: Geo, and without pservers
process           identity, BLAS threads, memory and kernels of a trainer's process
numerics          steps whose loss is not finite: the setting on_nan
run_options       replicas, passes, and the place of updates
training_run      the training step, and everything it passes through
profiling         the profile of a run
single_trainer    training without pservers
session_parts     run and cluster of a job
conclusion        the end of a job on trainer 0: saves, then tests
session           the trainer command, from settings to exit code
lifetime          raises the original error on use after failure
connected_calls   calls of a connected executor between two steps
watched_scripts   the pages of a script
connected         `ConnectedExecutor`, for users' own loops
saved_session     the test of a saved model
"""

from psrt.trainer.training import saved_session, session
from psrt.trainer.training.cluster import ConnectedCluster
from psrt.trainer.training.connected import ConnectedExecutor, names_of
from psrt.trainer.training.process import assume_identity
from psrt.trainer.training.run_options import RunOptions
from psrt.trainer.training.shrinking import Shrunk
from psrt.trainer.training.single_trainer import SingleTrainer
from psrt.trainer.training.training_run import TrainingRun

__all__ = [
    "ConnectedCluster",
    "ConnectedExecutor",
    "RunOptions",
    "Shrunk",
    "SingleTrainer",
    "TrainingRun",
]
__all__ += ["assume_identity", "names_of", "saved_session", "session"]
