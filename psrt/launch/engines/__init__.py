"""engines: the ways to start the processes of a plan.

table  one row for each engine
local  processes of this host
ssh    processes of other hosts, over SSH
mpi    processes of one mpirun
slurm  processes of an allocation of Slurm
slurm_job  a launch as a job of Slurm
ray_actor  a process of an actor of Ray
ray    actors of a Ray cluster
kubernetes  pods of the Helm chart
"""

from psrt.launch.engines.local import LocalEngine
from psrt.launch.engines.table import TABLE, EngineKind

__all__ = ["TABLE", "EngineKind", "LocalEngine"]
