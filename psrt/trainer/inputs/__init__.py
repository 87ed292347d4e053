"""inputs: files in reading order.

program_file   A job's Python file: find it, import it, call its `build()`
table_changes  What a job file says of sparse tables, put in the place of what its program says
job            A job: its program, which data feeds which table, and how its files are laid out
outputs        The vars that say how well a model does, fetched in every step
counts         How often the ids of a batch were shown and clicked, for tables whose admission
               is `ShowClick`
prefetch       Which rows a mini-batch needs: one list of distinct ids per table, over all
               slots that feed it
state          How far a trainer has come with its data, kept in a file, so that another
               process can go on
batches        From a job's files to prepared batches: which files, parsed by reader threads,
               deduplicated
"""

from __future__ import annotations

from psrt.data.reading import Ahead
from psrt.trainer.inputs import batches, state
from psrt.trainer.inputs.batches import PREPARED_AHEAD, feed, format_of, training_files
from psrt.trainer.inputs.counts import with_counts
from psrt.trainer.inputs.job import Job, load_job
from psrt.trainer.inputs.outputs import Fetched, Measured, Outputs
from psrt.trainer.inputs.prefetch import BatchPreparer, Feed, PreparedBatch, bind

__all__ = [
    "PREPARED_AHEAD",
    "Ahead",
    "BatchPreparer",
    "Feed",
    "Fetched",
    "Job",
    "Measured",
    "Outputs",
    "PreparedBatch",
    "batches",
    "bind",
    "feed",
    "format_of",
    "load_job",
    "state",
    "training_files",
    "with_counts",
]
