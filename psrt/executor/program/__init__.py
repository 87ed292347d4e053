"""program: files in reading order.

compiled        a program bound to memory of its own: cells, rows of tables, closures
recurrence      the op whose step is a program: steps of its own compiled program
loops           the op that repeats a program while a condition holds
feeds           checks of a fed batch, and its arrays put into the cells of the data vars
derived         computing derived ids: those of sparse tables that depend on fed data alone
scope_binding   arrays of the scope put into cells, each checked once
preparation     from the user's program to the one that runs: the passes of a build strategy
merging         from the values of replicas to the value of the batch, for every var
fetches         copies of vars after a run, merged over replicas
finite_checks   checks of values right after they are computed
gradient_hooks  hooks that hand out each gradient as soon as it is final
deprecated      old names of executors, which work and warn
update_states   optimizer states of the parameters that an executor updates itself
sequential      the sequential executor: the closures of a compiled program, run in order
first_not_finite  the place where the first number came to be that is not finite
"""

from psrt.executor.program import loops, recurrence
from psrt.executor.program.compiled import Compiled
from psrt.executor.program.deprecated import DeprecatedNames
from psrt.executor.program.derived import DerivedIds, fed_vars
from psrt.executor.program.feeds import Feed, Intake, check_is_batch, check_names, has_rows
from psrt.executor.program.fetches import Fetch, Fetches, Merged, among, copy_of
from psrt.executor.program.finite_checks import NO_CHECKS, FiniteChecks, add_checks
from psrt.executor.program.first_not_finite import first_not_finite
from psrt.executor.program.gradient_hooks import gradient_hooks
from psrt.executor.program.merging import Merge, merges
from psrt.executor.program.preparation import PreparedProgram, prepare
from psrt.executor.program.scope_binding import ScopeBinding
from psrt.executor.program.sequential import Executor
from psrt.executor.program.update_states import UpdateStates

__all__ = ["Compiled", "DeprecatedNames", "DerivedIds", "Executor", "among", "fed_vars"]
__all__ += [
    "Feed",
    "Fetch",
    "Fetches",
    "Intake",
    "Merge",
    "Merged",
    "check_is_batch",
    "check_names",
    "copy_of",
    "has_rows",
    "merges",
]
__all__ += ["NO_CHECKS", "FiniteChecks", "add_checks", "first_not_finite"]
__all__ += ["PreparedProgram", "ScopeBinding", "UpdateStates", "gradient_hooks", "prepare"]
__all__ += ["loops", "recurrence"]
