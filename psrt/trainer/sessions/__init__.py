"""Sessions: the trainer command, over the training runtime.

signals        SIGTERM and Ctrl-C, handled at the end of a step
profiling      the profile of a run
step_values    counters and sums that outlive a step, kept for cuts
session_parts  run and cluster of a job
saved_session  the test of a saved model
validation     the validations of a training, made of their parts
callbacks      functions of the user's that a job file names
after_steps    models at intervals, validations and callbacks between steps
conclusion     the end of a job on trainer 0: saves, then tests
session        one training, from its first step to its report
command        the trainer command, from settings to exit code
"""

from psrt.trainer.sessions import command, profiling, saved_session
from psrt.trainer.sessions.session import Session
from psrt.trainer.sessions.session_parts import run_of

__all__ = ["Session", "command", "profiling", "run_of", "saved_session"]
