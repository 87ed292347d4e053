"""`psrt plan`: placement of a job's parameters, and the number of pservers it takes.

Reading order: use (how tables are used) · size (the answer as text and JSON) · command.
"""

from __future__ import annotations

from psrt.cli.plan.command import plan

__all__ = ["plan"]
