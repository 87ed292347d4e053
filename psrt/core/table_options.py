"""What a user may ask of a sparse table beyond its shape and optimizer: plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.core.admission import DEFAULT_SCORE, Admission, Score
from psrt.core.lifecycle import Growth, Lifecycle


@dataclass(frozen=True)
class TableOptions:
    """The fields are those of `psrt.core.specs.SparseTableSpec`; see docs/tables.md.

    They say what pservers do with rows. A trainer without pservers keeps every row it updates,
    whole and in float32.
    """

    admission: Admission | None = None
    score: Score = DEFAULT_SCORE
    lifecycle: Lifecycle | None = None
    growth: Growth | None = None
    storage: str = "float32"


DEFAULT_OPTIONS = TableOptions()
