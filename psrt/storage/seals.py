"""Size and checksum of a whole file, for a manifest.

The checksum of an array file is that of its trailer, which covers the index, which covers the
headers of all pages, which cover all arrays. So the seal of a file costs no second reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Seal:
    """A file has a seal if it is `size_bytes` long and its trailer ends with `checksum`."""

    size_bytes: int
    checksum: int

    def to_plain(self) -> dict[str, Any]:
        """Return the seal as a manifest has it: `{"bytes": 128, "xxh3": "0123456789abcdef"}`."""
        return {"bytes": self.size_bytes, "xxh3": f"{self.checksum:016x}"}

    @classmethod
    def from_plain(cls, plain: Any) -> Seal:
        """Return the seal that a manifest has; raises `ValueError` for anything else."""
        try:
            return cls(int(plain["bytes"]), int(plain["xxh3"], 16))
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a seal: {plain!r}") from error
