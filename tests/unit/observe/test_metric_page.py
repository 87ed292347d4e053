"""Values of one moment as families: only what the catalogue has, and summed."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from psrt.core.errors import InternalError
from psrt.observe.catalogue import OF_PROCESSES, OF_PSERVERS
from psrt.observe.durations import Durations
from psrt.observe.metric_page import MetricPage
from psrt.observe.process_facts import add_process_facts

ALL = (*OF_PROCESSES, *OF_PSERVERS)


class Once:
    def __init__(self, page: MetricPage) -> None:
        self.page = page

    def collect(self):
        return self.page.families()


def samples(page: MetricPage) -> dict[tuple[str, ...], float]:
    """Name and label values → value, as a reader of OpenMetrics parses them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once(page))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_values_of_the_same_labels_are_summed_and_gauges_may_be_raised() -> None:
    page = MetricPage(OF_PSERVERS)
    page.add("psrt_pserver_rows", 2, "emb")
    page.add("psrt_pserver_rows", 3, "emb")
    page.raise_to("psrt_pserver_round", 7)
    page.raise_to("psrt_pserver_round", 5)
    page.summary("psrt_pserver_round_wait_seconds", 2, 0.5, "0")

    found = samples(page)

    assert found["psrt_pserver_rows", "emb"] == 5
    assert found["psrt_pserver_round",] == 7
    assert found["psrt_pserver_round_wait_seconds_sum", "0"] == 0.5


def test_histograms_are_cumulative() -> None:
    page, durations = MetricPage(OF_PSERVERS), Durations()
    for seconds in (40e-6, 60e-6, 1000.0):
        durations.add("PULL", seconds)
    page.durations("psrt_pserver_call_duration_seconds", durations.totals())
    page.bins("psrt_push_staleness_steps", [0, 1, 3], [4, 0, 2, 1])

    found = samples(page)

    assert found["psrt_pserver_call_duration_seconds_bucket", "5e-05", "PULL"] == 1
    assert found["psrt_pserver_call_duration_seconds_bucket", "+Inf", "PULL"] == 3
    assert found["psrt_push_staleness_steps_bucket", "3.0"] == 6
    assert found["psrt_push_staleness_steps_bucket", "+Inf"] == 7


@pytest.mark.parametrize(
    ("name", "labels"),
    [("psrt_unknown", ()), ("psrt_pserver_rows", ()), ("psrt_pserver_round_wait_seconds", ("0",))],
)
def test_what_the_catalogue_does_not_have_is_a_defect(name: str, labels: tuple[str, ...]) -> None:
    with pytest.raises(InternalError, match="not in the catalogue"):
        MetricPage(OF_PSERVERS).add(name, 1, *labels)


def test_names_follow_the_conventions() -> None:
    names = [spec.name for spec in ALL]

    assert len(set(names)) == len(names)
    assert [s.name for s in ALL if (s.kind == "counter") != s.name.endswith("_total")] == []
    assert [n for n in names if not n.startswith(("psrt_", "process_"))] == []
    assert [s.name for s in ALL if not s.help.endswith((".", "since 1970."))] == []


def test_facts_of_a_process_are_on_its_page() -> None:
    page = MetricPage(OF_PROCESSES)

    add_process_facts(page, "pserver")

    assert any(key[0] == "psrt_build_info" for key in samples(page))
