"""Criteo-shaped rows of a planted logistic model with a known best AUC.

    P(click) = σ(bias + w · dense_input + Σ over slots s of u[s, id])

13 dense values are exponential; the 26 slots have 10 … `ids_per_slot` ids (a geometric series over
the slots) with Zipf's skew, so that most ids occur often enough to be learnt. With default figures
a logistic regression by Adagrad comes within 0.003 of the best AUC from 200,000 rows. Files are a
function of `Planted`. Ids of slot s are s · 1,000,000 + rank, s = 1 … 26.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import F64, I64
from psrt.data.convert.sharded import Destination, ExampleRows, ShardedWriter

DENSE, SLOTS = 13, 26
ID_STRIDE = 1_000_000
REPORT_NAME = "planted.json"
_FEWEST_IDS = 10
_ROWS_PER_CHUNK = 16_384
_DENSE_LIMIT = 8.0
_DENSE_DECIMALS = 3
_DENSE_SIGNAL, _ID_SIGNAL = 0.2, 0.45
_CLICK_RATE = 0.25
_MODEL, _TRAIN, _TEST = range(3)


@dataclass(frozen=True)
class Planted:
    """Settings of the rows; `skew` is the exponent of Zipf's law within a slot."""

    rows: int = 200_000
    test_rows: int = 50_000
    seed: int = 0
    ids_per_slot: int = 500
    skew: float = 2.0

    def __post_init__(self) -> None:
        if self.rows < 1 or self.test_rows < 1:
            raise ConfigError(
                f"rows and test_rows are 1 or more, not {self.rows}, {self.test_rows}"
            )
        if not _FEWEST_IDS <= self.ids_per_slot <= ID_STRIDE:
            raise ConfigError(
                f"ids_per_slot is {_FEWEST_IDS} … {ID_STRIDE}, not {self.ids_per_slot}"
            )
        if self.seed < 0 or not 0 <= self.skew <= 10:
            raise ConfigError(f"seed is 0 or more and skew 0 … 10, not {self.seed}, {self.skew}")


@dataclass(frozen=True)
class Chunk:
    """`rows` and the true P(click) of each."""

    rows: ExampleRows
    probabilities: F64


@dataclass(frozen=True)
class Report:
    """Rows written and the best scores of a model of them; the text of planted.json."""

    planted: Planted
    train_rows: int
    test_rows: int
    click_rate: float
    best_auc: float
    best_log_loss: float

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


class PlantedModel:
    """Weights, and the rows they generate."""

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        random = np.random.default_rng([planted.seed, _MODEL])
        self._sizes: I64 = np.geomspace(_FEWEST_IDS, planted.ids_per_slot, SLOTS).astype(np.int64)
        self._dense_weights: F64 = random.normal(0, _DENSE_SIGNAL, DENSE)
        self._id_weights = [random.normal(0, _ID_SIGNAL, size) for size in self._sizes]
        self._shares = [_zipf(int(size), planted.skew) for size in self._sizes]
        self._bias = 0.0
        self._bias = _bias_for(_CLICK_RATE, self._draw(random, _ROWS_PER_CHUNK)[2])

    def chunk(self, stream: int, number: int, rows: int) -> Chunk:
        """Return chunk `number` of the train or test stream; a pure function of its arguments."""
        random = np.random.default_rng([self.planted.seed, stream, number])
        dense, ids, logits = self._draw(random, rows)
        probabilities = 1 / (1 + np.exp(-logits))
        labels = (random.random(rows) < probabilities).astype(np.uint8)
        return Chunk(ExampleRows(labels, dense.astype(np.float32), ids), probabilities)

    def _draw(self, random: np.random.Generator, rows: int) -> tuple[F64, I64, F64]:
        """Draw (dense (n, 13), ids (n, 26), logits (n,))."""
        drawn = np.minimum(random.exponential(1.0, (rows, DENSE)), _DENSE_LIMIT)
        dense = drawn.round(_DENSE_DECIMALS)
        logits = self._bias + dense @ self._dense_weights
        ids = np.empty((rows, SLOTS), np.int64)
        for slot in range(SLOTS):
            ranks = np.searchsorted(self._shares[slot], random.random(rows), side="right")
            logits += self._id_weights[slot][ranks]
            ids[:, slot] = (slot + 1) * ID_STRIDE + ranks
        return dense, ids, logits


def generate(
    planted: Planted, destination: Destination, on_rows: Callable[[int], None] = lambda rows: None
) -> tuple[ShardedWriter, Report]:
    """Write train and test files and planted.json; calls `on_rows` as rows are written."""
    model = PlantedModel(planted)
    tested: list[Chunk] = []
    with ShardedWriter(destination) as writer:
        for part, stream, total in (
            ("train", _TRAIN, planted.rows),
            ("test", _TEST, planted.test_rows),
        ):
            for number, start in enumerate(range(0, total, _ROWS_PER_CHUNK)):
                chunk = model.chunk(stream, number, min(_ROWS_PER_CHUNK, total - start))
                writer.write(part, chunk.rows)
                on_rows(len(chunk.probabilities))
                tested += [chunk] if stream == _TEST else []
        report = _report(planted, writer, tested)
        (destination.directory / REPORT_NAME).write_text(report.to_json())
    return writer, report


def auc(scores: F64, labels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> float:
    """Return the area under the ROC curve by the rank sum of Mann & Whitney; ties count half."""
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(sizes) - (sizes - 1) / 2
    positives = int(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = float(mean_rank[group[labels == 1]].sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


def _report(planted: Planted, writer: ShardedWriter, tested: list[Chunk]) -> Report:
    probabilities = np.concatenate([chunk.probabilities for chunk in tested])
    labels = np.concatenate([chunk.rows.labels for chunk in tested])
    likelihood = np.where(labels == 1, probabilities, 1 - probabilities)
    return Report(
        planted,
        train_rows=writer.rows["train"],
        test_rows=writer.rows["test"],
        click_rate=writer.clicks["train"] / writer.rows["train"],
        best_auc=auc(probabilities, labels),
        best_log_loss=float(-np.log(likelihood).mean()),
    )


def _zipf(size: int, skew: float) -> F64:
    """Return cumulative shares of ranks 1 … `size`, of weights k^−skew; the last is 1."""
    shares = np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -skew)
    return np.asarray(shares / shares[-1])


def _bias_for(rate: float, logits: F64) -> float:
    """Return the bias at which σ(logits + bias) has mean `rate`, by bisection."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if (1 / (1 + np.exp(-(logits + middle)))).mean() < rate:
            low = middle
        else:
            high = middle
    return (low + high) / 2
