"""The metrics of a pserver, read from its counters, decisions and tables when asked for."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from psrt.core.threads import CrashReport
from psrt.observe.catalogue import MOST_TABLES, MOST_TRAINERS, OF_PROCESSES, OF_PSERVERS, OTHERS
from psrt.observe.metric_page import MetricPage
from psrt.observe.observation import Observation
from psrt.pserver.process.metered_calls import CallMeter
from psrt.pserver.replicas import PartHost
from psrt.status import PlanGatherer
from psrt.status.page import JobPage

PATIENCE_S = 2.0
"""Longest wait for another pserver, whose facts the page shows, too."""

_COUNTERS = {
    "psrt_pserver_calls_total": "pserver_calls",
    "psrt_pserver_pushes_total": "pserver_pushes",
    "psrt_pserver_pushes_repeated_total": "pserver_pushes_repeated",
    "psrt_pserver_pushed_blocks_total": "pserver_blocks_applied",
    "psrt_pserver_pulled_rows_total": "pserver_rows_read",
    "psrt_pserver_pulled_blocks_total": "pserver_blocks_read",
    "psrt_pserver_dropped_rows_total": "pserver_rows_dropped",
    "psrt_pserver_apply_seconds_total": "pserver_apply_s",
    "psrt_pserver_rounds_total": "pserver_rounds",
}
_STALENESS = "pserver_staleness_"


@contextlib.contextmanager
def observed(host: PartHost, meter: CallMeter, crashes: CrashReport) -> Iterator[Observation]:
    """The pages of a pserver, and the page of its whole job; not served yet."""
    gatherer = PlanGatherer(host.status, PATIENCE_S)
    page = JobPage(gatherer.gather)
    with contextlib.closing(gatherer), _observation_of(host, meter, crashes, page) as pages:
        try:
            yield pages
        finally:
            page.close()  # before the server, whose readers it holds


def _observation_of(
    host: PartHost, meter: CallMeter, crashes: CrashReport, job_page: JobPage
) -> Observation:

    def fill(page: MetricPage) -> None:
        page.add("psrt_pserver_ready", observation.is_ready)
        page.durations("psrt_pserver_call_duration_seconds", meter.durations.totals())
        for reason, count in meter.refused().items():
            page.add("psrt_rejected_total", count, reason)
        counters: Counter[str] = Counter()
        for service in host.services():
            status = service.status()
            counters.update(status["counters"])
            _add_part(page, status)
        if counters:
            _add_counters(page, counters)

    specs = *OF_PROCESSES, *OF_PSERVERS
    more = job_page.pages()
    observation = Observation("pserver", specs, fill, host.status, crashes, more)
    return observation


def _add_part(page: MetricPage, status: Mapping[str, Any]) -> None:
    """Add what one part of several that the process may serve has; numbers of rows are summed."""
    if status["job_id"]:
        page.raise_to("psrt_pserver_info", 1, status["job_id"], status["mode"])
    _add_rounds(page, status)
    _add_tables(page, status)
    _add_durability(page, status)


def _add_counters(page: MetricPage, counters: Mapping[str, float]) -> None:
    for name, counter in _COUNTERS.items():
        page.add(name, counters[counter])
    page.add("psrt_pserver_wait_seconds_total", counters["pserver_round_wait_s"], "round")
    page.add("psrt_pserver_wait_seconds_total", counters["pserver_meet_wait_s"], "clock")
    _add_staleness(page, counters)


def _add_staleness(page: MetricPage, counters: Mapping[str, float]) -> None:
    """Counters are `…_0`, `…_2_to_3` and `…_32_up`."""
    bins = {
        name.removeprefix(_STALENESS).rpartition("_")[2]: count
        for name, count in counters.items()
        if name.startswith(_STALENESS)
    }
    beyond = bins.pop("up")
    bounds = sorted(bins, key=int)
    counts = [*(bins[bound] for bound in bounds), beyond]
    page.bins("psrt_push_staleness_steps", [float(bound) for bound in bounds], counts)


def _add_rounds(page: MetricPage, status: Mapping[str, Any]) -> None:
    page.raise_to("psrt_pserver_step", status["global_step"])
    for state, count in Counter(each["state"] for each in status["trainers"]).items():
        page.raise_to("psrt_pserver_trainers", count, state)
    if not status["rounds"]:
        return
    page.raise_to("psrt_pserver_round", status["round"])
    page.raise_to("psrt_pserver_round_open_seconds", status["round_open_s"])
    for trainer, (pushes, seconds) in status["round_waits"].items():
        page.summary("psrt_pserver_round_wait_seconds", pushes, seconds, _label_of(trainer))


def _add_tables(page: MetricPage, status: Mapping[str, Any]) -> None:
    page.add("psrt_pserver_tables_loading", len(status["loading"]))
    for number, table in enumerate(status["tables"]):
        page.add("psrt_pserver_tables", 1, table["kind"])
        if table["kind"] == "dense":
            page.add("psrt_pserver_memory_bytes", table["bytes"], "dense", "stored")
            continue
        name = table["name"] if number < MOST_TABLES else OTHERS
        page.add("psrt_pserver_rows", table["rows"], name)
        pushed = status["pushed_rows"].get(table["name"], 0)
        page.add("psrt_pserver_pushed_rows_total", pushed, name)
        page.add("psrt_pserver_memory_bytes", table["bytes"], name, "stored")
        page.add("psrt_pserver_memory_bytes", table["waiting_bytes"], name, "waiting")


def _add_durability(page: MetricPage, status: Mapping[str, Any]) -> None:
    for trainer, pushes in status["durable_lags"].items() if status["is_durable"] else ():
        page.add("psrt_pserver_durable_lag_pushes", pushes, _label_of(trainer))
    if status["is_durable"] and status["durable_age_s"] is not None:
        page.raise_to("psrt_pserver_durable_age_seconds", status["durable_age_s"])
    if status["last_cut_age_s"] is not None:
        seen_s = time.time() - status["last_cut_age_s"]
        page.raise_to("psrt_last_cut_timestamp_seconds", seen_s)


def _label_of(trainer: int) -> str:
    return str(trainer) if trainer < MOST_TRAINERS else OTHERS
