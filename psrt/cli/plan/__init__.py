"""`psrt plan`: placement of a job's parameters, and the number of pservers it takes.

In reading order:

    use      workload of a job, declared or sampled from its data
    size     a sizing as text and as JSON
    needs    memory that each pserver of a running job needs
    command  the command
"""

from psrt.cli.plan.command import plan
from psrt.cli.plan.needs import memory_needs

__all__ = ["memory_needs", "plan"]
