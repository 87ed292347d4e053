"""`psrt data`: training files made, converted, checked and shown. In reading order:

options     Flags that commands share, and the report of commands that write files
check       `split` and `check`
stat        `stat`
public      Public data sets whose rows Python makes
converting  `convert` and the other converters
commands    The group
"""

from psrt.cli.data.commands import data

__all__ = ["data"]
