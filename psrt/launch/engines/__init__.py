"""engines: the ways to start the processes of a plan.

local  processes of this host
"""

from psrt.launch.engines.local import LocalEngine

__all__ = ["LocalEngine"]
