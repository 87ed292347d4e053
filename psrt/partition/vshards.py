"""Division of the id space of sparse tables among pservers.

An id belongs to a virtual shard by its hash, permanently; a pserver holds one contiguous range of
virtual shards of every table. Ranges differ by at most one shard, so with S pservers the largest
part is at most 1/S + 1/1024 of a table.
"""

from __future__ import annotations

from psrt.core.errors import ConfigError
from psrt.core.specs import VIRTUAL_SHARDS


def shard_bounds(pservers: int, virtual_shards: int = VIRTUAL_SHARDS) -> tuple[int, ...]:
    """`pservers + 1` bounds: pserver e holds virtual shards `[bounds[e], bounds[e + 1])`.

    Raises `ConfigError` for more pservers than virtual shards, or none.
    """
    if not 1 <= pservers <= virtual_shards:
        raise ConfigError(
            f"{virtual_shards} virtual shards cannot be shared among {pservers} pservers",
            hint=f"Use between 1 and {virtual_shards} pservers.",
        )
    return tuple(e * virtual_shards // pservers for e in range(pservers + 1))


__all__ = ["shard_bounds"]
