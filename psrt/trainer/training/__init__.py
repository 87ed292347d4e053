"""training: files in reading order.

metrics           What training is judged by: area under the ROC curve and mean loss, both in
                  constant memory
progress          Counts steps and examples, prints one line every few seconds, and sums up the
                  run
loop              The training step, and how one step's communication hides behind the next
                  one's compute
evaluate          Tests a model on held-back batches: forward only, rows read without creating
                  any
completion        Who may leave when, so that trainer 0 can test and save what *all* trainers
                  learned
shrinking         Asking all pservers to drop the rows of sparse tables that are at their end
cluster           What one trainer holds of the cluster: the plan, a client per pserver, the
                  communicator
signals           SIGTERM and Ctrl-C of a trainer: finish the step, tell the pservers, exit 128
                  + the signal
local_parameters  Training in this process: an executor that ends its steps with the program's
                  own updates, and the parameters these leave to others
workshop          Where a program runs in this process: its scope and executor, the BLAS
                  threads, the kernels
profiling         A training under the profiler: which stops of a step it sees, and what is
                  said at the end
local             Training without pservers: one trainer that holds every parameter and updates
                  them itself
session           One trainer process that trains, from settings to exit code
lifetime          When something can be used no more, and why: what each later use is told
running           A trainer's program at work over a scope its user may look into, by one
                  executor or by replicas
connected         An executor whose parameters live on pservers: each `run` is one step of
                  distributed training
saved_session     Tests a saved model on a job's held-back files; no pserver takes part
"""

from __future__ import annotations

from psrt.trainer.training import saved_session, session
from psrt.trainer.training.connected import ConnectedExecutor
from psrt.trainer.training.shrinking import Shrunk

__all__ = ["ConnectedExecutor", "Shrunk", "saved_session", "session"]
