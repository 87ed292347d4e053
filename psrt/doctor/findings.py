"""One thing that is wrong, and its remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`name` is short and stable; `where` is a host or an endpoint; `remedy` is an imperative."""

    name: str
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n    {self.remedy}  [{self.name}]"
