"""Cost of a plan: memory, traffic and CPU time, and the number of pservers a job takes.

Reading order: `traffic` (bytes of a step, by mode), `costs` (CPU time of calls), `footprint` (bytes
of tables), `loads` of pservers, `sizing` (the least number of them that is enough), `concerns`
(warnings about a plan). Every function here is pure: no socket, thread, clock or environment.
"""

from __future__ import annotations

__all__ = []
