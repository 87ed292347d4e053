"""`psrt data`: training files made, converted, checked and shown.

Reading order: options (flags that commands share) · check · stat · public (public data sets) ·
commands (the group).
"""

from __future__ import annotations

from psrt.cli.data.commands import data

__all__ = ["data"]
