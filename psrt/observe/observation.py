"""The pages of a process: /metrics, /healthz, /readyz, /status.json.

They are for reading alone and need no token. They name tables, trainers and the ids pulled most,
and hold no values of parameters.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from psrt.core.threads import CrashReport
from psrt.observe.catalogue import MetricSpec
from psrt.observe.gil_probe import GilProbe
from psrt.observe.http_server import HttpPage, HttpServer, MakePage
from psrt.observe.metric_page import MetricPage
from psrt.observe.process_facts import add_process_facts

log = logging.getLogger("psrt.observe")

Fill: TypeAlias = Callable[[MetricPage], None]
"""Adds the values of this moment to a page."""

NO_PAGES: Mapping[str, MakePage] = MappingProxyType({})


class Observation:
    """The pages of one process of `role`, at `address` from `start` to `close`.

    `fill` adds values of `specs`, `status` returns what /status.json shows. The process is not
    ready before `set_ready(True)`. `more` pages are served, too. A context manager that closes.
    """

    def __init__(
        self,
        role: str,
        specs: Iterable[MetricSpec],
        fill: Fill,
        status: Callable[[], dict[str, Any]],
        crashes: CrashReport,
        more: Mapping[str, MakePage] = NO_PAGES,
    ) -> None:
        self.is_ready = False
        self._status, self._fill, self._crashes, self._more = status, fill, crashes, more
        self._gil: GilProbe | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Values(role, tuple(specs), self._values))
        ProcessCollector(registry=self._registry)
        self._server: HttpServer | None = None

    def start(self, address: str, names: Sequence[str] = ()) -> str:
        """Serve; returns the endpoint. See `HttpServer` for `names` and errors."""
        self._server = HttpServer(address, self.pages(), self._crashes, names)
        self._gil = GilProbe(self._crashes)
        log.info("metrics on http://%s/metrics", self._server.endpoint)
        return self._server.endpoint

    def set_ready(self, is_ready: bool) -> None:
        """Set what /readyz answers."""
        self.is_ready = is_ready

    def __enter__(self) -> Observation:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        if self._gil is not None:
            self._gil.close()
        if self._server is not None:
            self._server.close()

    def pages(self) -> dict[str, MakePage]:
        """Path → the function that makes its page."""
        return {
            "/metrics": self._metrics,
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/status.json": self._facts,
            **self._more,
        }

    def _values(self, page: MetricPage) -> None:
        if self._gil is not None:
            page.add("psrt_process_gil_wait_seconds_total", self._gil.waited_s)
            page.add("psrt_process_gil_probes_total", self._gil.probes)
        self._fill(page)

    def _metrics(self, accept: str) -> HttpPage:
        encode, content_type = choose_encoder(accept)
        return HttpPage(encode(self._registry), content_type)

    def _health(self, accept: str) -> HttpPage:
        if self._crashes.error is None:
            return HttpPage(b"ok\n")
        return HttpPage(f"thread {self._crashes.thread_name} crashed\n".encode(), status=503)

    def _readiness(self, accept: str) -> HttpPage:
        return HttpPage(b"ready\n") if self.is_ready else HttpPage(b"not ready\n", status=503)

    def _facts(self, accept: str) -> HttpPage:
        text = json.dumps(self._status(), indent=2)
        return HttpPage(f"{text}\n".encode(), "application/json")


class _Values(Collector):
    """Reads all values when asked; names are checked, so none is described before."""

    def __init__(self, role: str, specs: Sequence[MetricSpec], fill: Fill) -> None:
        self._role, self._specs, self._fill = role, specs, fill

    def collect(self) -> Iterator[Metric]:
        page = MetricPage(self._specs)
        add_process_facts(page, self._role)
        self._fill(page)
        return page.families()
