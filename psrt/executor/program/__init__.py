"""program: files in reading order.

compiled        A program bound to memory of its own: cells, rows of tables, and a list of
                closures
feeds           One batch into the cells of the data vars, checked where it enters
derived         Computing derived ids: those of sparse tables that follow from the fed batch
                alone
in_scope        Arrays of the scope in the cells of a program, each looked at once before ops
                trust it
preparation     From the program a user built to the one that runs: the passes a build strategy
                asks for
merging         How the values of replicas become that of the batch, for every var of a program
fetches         What comes out of a run: copies of vars, and one value from those of several
                replicas
gradient_hooks  Telling somebody of each gradient as soon as it is final, while the rest of a
                step still runs
sequential      The sequential executor: the closures of a compiled program, run in order
"""

from __future__ import annotations

from psrt.executor.program.compiled import Compiled
from psrt.executor.program.derived import DerivedIds, fed_vars
from psrt.executor.program.feeds import Feed, Intake, check_is_batch, check_names
from psrt.executor.program.fetches import Fetch, Fetches, copy_of
from psrt.executor.program.gradient_hooks import gradient_hooks
from psrt.executor.program.in_scope import InScope
from psrt.executor.program.preparation import PreparedProgram, prepare
from psrt.executor.program.sequential import Executor

__all__ = [
    "Compiled",
    "DerivedIds",
    "Executor",
    "Feed",
    "Fetch",
    "Fetches",
    "InScope",
    "Intake",
    "PreparedProgram",
    "check_is_batch",
    "check_names",
    "copy_of",
    "fed_vars",
    "gradient_hooks",
    "prepare",
]
