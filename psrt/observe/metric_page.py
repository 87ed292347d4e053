"""Values of one moment, checked against the catalogue, as families of `prometheus_client`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.utils import floatToGoString

from psrt.core.errors import InternalError
from psrt.observe.catalogue import Kind, MetricSpec
from psrt.observe.durations import BOUNDS_S, Histogram


class MetricPage:
    """Metrics of `specs`; values that are added under one name and labels are summed.

    Raises `InternalError` for a name, type or number of labels that `specs` do not have.
    """

    def __init__(self, specs: Iterable[MetricSpec]) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._values: dict[str, dict[tuple[str, ...], float]] = {}
        self._summaries: dict[str, dict[tuple[str, ...], tuple[int, float]]] = {}
        self._histograms: dict[str, dict[tuple[str, ...], tuple[list[_Bucket], float | None]]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add to a counter or a gauge."""
        self._check(name, labels, "counter", "gauge")
        series = self._values.setdefault(name, {})
        series[labels] = series.get(labels, 0.0) + value

    def raise_to(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge unless it has a larger value."""
        self._check(name, labels, "gauge")
        series = self._values.setdefault(name, {})
        series[labels] = max(series.get(labels, value), value)

    def summary(self, name: str, count: int, total: float, *labels: str) -> None:
        """Add `count` events of `total` units."""
        self._check(name, labels, "summary")
        series = self._summaries.setdefault(name, {})
        before = series.get(labels, (0, 0.0))
        series[labels] = before[0] + count, before[1] + total

    def bins(self, name: str, bounds: Sequence[float], counts: Sequence[float]) -> None:
        """Set a histogram without a sum; the last count is beyond all bounds."""
        self._check(name, (), "histogram")
        self._histograms.setdefault(name, {})[()] = _buckets(bounds, counts), None

    def durations(self, name: str, totals: Mapping[str, Histogram]) -> None:
        """Set a histogram of seconds for each value of its one label."""
        for label, found in totals.items():
            self.duration(name, found, label)

    def duration(self, name: str, found: Histogram, *labels: str) -> None:
        """Set one histogram of seconds."""
        self._check(name, labels, "histogram")
        buckets = _buckets(BOUNDS_S, found.counts)
        self._histograms.setdefault(name, {})[labels] = buckets, found.sum_s

    def families(self) -> Iterator[Metric]:
        """All metrics that have values, in the order of the catalogue."""
        for spec in self._specs.values():
            if spec.name in self._values:
                yield self._plain(spec)
            elif spec.name in self._summaries:
                summary = SummaryMetricFamily(spec.name, spec.help, labels=spec.labels)
                for labels, (count, total) in self._summaries[spec.name].items():
                    summary.add_metric(labels, count, total)
                yield summary
            elif spec.name in self._histograms:
                histogram = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
                for labels, (buckets, sum_value) in self._histograms[spec.name].items():
                    histogram.add_metric(labels, buckets, sum_value)
                yield histogram

    def _plain(self, spec: MetricSpec) -> Metric:
        make = CounterMetricFamily if spec.kind == "counter" else GaugeMetricFamily
        family = make(spec.name, spec.help, labels=spec.labels)
        for labels, value in self._values[spec.name].items():
            family.add_metric(labels, value)
        return family

    def _check(self, name: str, labels: Sequence[str], *kinds: Kind) -> None:
        spec = self._specs.get(name)
        if spec is None or spec.kind not in kinds or len(spec.labels) != len(labels):
            raise InternalError(f"{name} with labels {labels} is not in the catalogue of metrics.")


_Bucket = tuple[str, float]


def _buckets(bounds: Sequence[float], counts: Sequence[float]) -> list[_Bucket]:
    """Cumulative counts by upper bound, as Prometheus has them."""
    names = [*map(floatToGoString, bounds), "+Inf"]
    return list(zip(names, accumulate(counts), strict=True))
