"""Inputs of a training: the job, its batches and the rows they need.

user_errors    hints for errors that Python raises in a job's own code
program_file   a job's Python file: found, imported, its `build()` called
table_changes  settings of sparse tables in a job file, applied to the program
job            program, data vars of each table, layout of data files
outputs        the vars fetched in every step: loss, prediction, metrics
counts         shows and clicks of ids, for tables whose admission is `ShowClick`
prefetch       distinct ids of a batch per table, and their rows
warm_start     the source of first values and its rules, from flags or the job file
dealt          epochs whose files were dealt again, to another number of trainers
kept_values    arrays that a trainer keeps from step to step, as text in a position
label_ranges   labels outside of the range of their loss
state          progress through the data, kept in a file for `--resume`
resuming       check that pservers have what a state goes on from
batches        a job's files to prepared batches
redealing      progress of all trainers of a cut, dealt to another number of trainers
"""

from psrt.data.reading import Ahead
from psrt.trainer.inputs import batches, redealing, resuming, state
from psrt.trainer.inputs.batches import PREPARED_AHEAD, feed, format_of, training_files
from psrt.trainer.inputs.counts import with_counts
from psrt.trainer.inputs.job import Job, load_job
from psrt.trainer.inputs.kept_values import Kept, kept_of, plain_of
from psrt.trainer.inputs.outputs import Measured, Outputs, Scored, groups_of
from psrt.trainer.inputs.prefetch import BatchPreparer, PreparedBatch, bind
from psrt.trainer.inputs.program_file import run_user_code
from psrt.trainer.inputs.warm_start import warm_start_of

__all__ = ["PREPARED_AHEAD", "Ahead", "feed", "format_of", "training_files"]
__all__ += ["BatchPreparer", "Measured", "Outputs", "PreparedBatch", "Scored", "bind"]
__all__ += ["groups_of", "run_user_code"]
__all__ += ["Job", "Kept", "batches", "kept_of", "load_job", "plain_of", "redealing", "state"]
__all__ += ["resuming", "warm_start_of", "with_counts"]
