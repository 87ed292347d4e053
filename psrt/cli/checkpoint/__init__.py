"""`psrt checkpoint`: the cuts of jobs listed, shown, compared, exported, checked, made, deleted.

In reading order:

contents       Tables, parts and positions of a cut as plain data
listing        `list` and `show`
checking       `verify`
making         `save` and `prune`
compacting     `compact`
diffing        `diff`
array_files    NumPy and Parquet files of the parameters of a cut
cut_model      a saved model of a cut and the program of a job file
export_target  the directory of an export, complete or absent
exporting      `export`
commands       The group
"""

from psrt.cli.checkpoint.commands import checkpoint

__all__ = ["checkpoint"]
