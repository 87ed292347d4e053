"""Admission rules, which decide the ids that may own a row, and the score of an id: frozen data.

Until an id is admitted it reads as its initial value, and its updates are ignored. A push carries
the shows and clicks of each id in its examples, one show and no click except with `ShowClick`.
Formulas and defaults are those of PaddlePaddle's accessors and entry filters; `Probability` admits
with p, where theirs admits with 1 − p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

WAITING_IDS = 1 << 20


@dataclass(frozen=True)
class Score:
    """score = nonclick_coeff · (shows − clicks) + click_coeff · clicks."""

    nonclick_coeff: float = 0.1
    click_coeff: float = 1.0


DEFAULT_SCORE = Score()


@dataclass(frozen=True)
class CountFilter:
    """Admit an id with the push that brings its shows to `count`; that push is applied.

    Shows are counted in float32, so `count` is 2²⁴ at most.

    At most `waiting_ids` ids are counted before admission, over all pservers together: 12 bytes
    each, so 12 MiB by default. Beyond that, counts are too low by a bounded error (Misra & Gries
    1982, see `psrt.kernels.tables.admission`), so a frequent id is admitted late, and no id early.
    """

    count: int = 1
    waiting_ids: int = WAITING_IDS


@dataclass(frozen=True)
class Probability:
    """Admit a fraction of all ids, chosen by a pure function of the table's seed and the id."""

    probability: float = 1.0


@dataclass(frozen=True)
class ShowClick:
    """Admit an id with the push that brings its score to `threshold`; that push is applied.

    `show` and `click` name data vars with the shows and clicks of every example, (rows,) or
    (rows, 1). Trainers sum them for each id and push both with the gradients. The bound
    `waiting_ids` is that of `CountFilter`. A threshold of 0 admits at once; shows and clicks then
    only count for the score by which rows grow and are dropped. A count that is negative, infinite
    or NaN counts as 0.
    """

    show: str
    click: str
    threshold: float = 0.0
    waiting_ids: int = WAITING_IDS


Admission: TypeAlias = CountFilter | Probability | ShowClick
