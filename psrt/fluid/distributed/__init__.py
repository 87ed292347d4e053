"""Names of the 2.x API over the same cluster: `import psrt.fluid.distributed.fleet as fleet`.

strategy → fleet.
"""

from psrt.fluid.parameters import CountFilterEntry, ProbabilityEntry, ShowClickEntry

__all__ = ["CountFilterEntry", "ProbabilityEntry", "ShowClickEntry"]
