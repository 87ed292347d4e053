"""`psrt checkpoint`: the cuts of jobs listed, shown, checked, made and deleted. In reading order:

contents    Tables, parts and positions of a cut as plain data
listing     `list` and `show`
checking    `verify`
making      `save` and `prune`
compacting  `compact`
commands    The group
"""

from psrt.cli.checkpoint.commands import checkpoint

__all__ = ["checkpoint"]
