"""plan: files in reading order.

size     What `psrt plan --size` prints: a `Sizing` for people and as plain data
use      How a job would use a cluster, for `psrt plan --size`: as it declares, or as its data
         shows
command  `psrt plan`: a job file and endpoints in, the placement of its parameters out; or its
         size
"""

from __future__ import annotations

__all__ = []
