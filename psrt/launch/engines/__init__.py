"""engines: the ways to start the processes of a plan.

table  one row for each engine
local  processes of this host
"""

from psrt.launch.engines.local import LocalEngine
from psrt.launch.engines.table import TABLE, EngineKind

__all__ = ["TABLE", "EngineKind", "LocalEngine"]
