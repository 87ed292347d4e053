"""Inputs of a training: the job, its batches and the rows they need.

program_file   a job's Python file: found, imported, its `build()` called
table_changes  settings of sparse tables in a job file, applied to the program
job            program, data vars of each table, layout of data files
outputs        the vars fetched in every step: loss, prediction, metrics
counts         shows and clicks of ids, for tables whose admission is `ShowClick`
prefetch       distinct ids of a batch per table, and their rows
state          progress through the data, kept in a file for `--resume`
batches        a job's files to prepared batches
"""

from psrt.data.reading import Ahead
from psrt.trainer.inputs import batches, state
from psrt.trainer.inputs.batches import PREPARED_AHEAD, feed, format_of, training_files
from psrt.trainer.inputs.counts import with_counts
from psrt.trainer.inputs.job import Job, load_job
from psrt.trainer.inputs.outputs import Measured, Outputs
from psrt.trainer.inputs.prefetch import BatchPreparer, PreparedBatch, bind

__all__ = ["PREPARED_AHEAD", "Ahead", "feed", "format_of", "training_files"]
__all__ += ["BatchPreparer", "Measured", "Outputs", "PreparedBatch", "bind"]
__all__ += ["Job", "batches", "load_job", "state", "with_counts"]
