"""Processes send their spans to a collector; those of one step share a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import psrt
from tests.support.pserver import daemon
from tests.support.small_job import BATCH, lines, write_files
from tests.support.spans import Collector, collector, is_missing

pytestmark = pytest.mark.skipif(is_missing(), reason="no psrt-cluster[otel]")

STEPS, EVERY = 20, 8


def trained(tmp_path: Path, variables: dict[str, str], *flags: str) -> str:
    """Train with traces; returns the output of the trainer."""
    job = write_files(tmp_path / "job", [lines(STEPS * BATCH, seed=1)])
    with daemon(tmp_path, "--traces", **variables) as pserver:
        where = "--endpoints", pserver.endpoint, "--trace-every", str(EVERY), *flags
        log = tmp_path / "trainer.log"
        with psrt(log, "trainer", *where, str(job), **variables) as trainer:
            assert trainer.exit_code() == 0, trainer.output
            pserver.process.wait(60)
            return trainer.output


def test_json_lines_of_a_pserver_name_job_call_and_caller(tmp_path: Path) -> None:
    job = write_files(tmp_path / "job", [lines(BATCH, seed=1)])
    with daemon(tmp_path, "--log-format", "json") as pserver:
        where = "--endpoints", pserver.endpoint
        with psrt(tmp_path / "trainer.log", "trainer", *where, str(job)) as trainer:
            assert trainer.exit_code() == 0, trainer.output
        pserver.process.wait(60)
    printed = (tmp_path / "pserver.log").read_text().splitlines()
    found = [json.loads(line) for line in printed if line.startswith("{")]

    (completed,) = (line for line in found if line["message"] == "trainer 0 completed")
    assert (
        completed.items()
        >= {
            "role": "pserver",
            "endpoint": pserver.endpoint,
            "job": "small",
            "pserver": 0,
            "call": "COMPLETE",
            "caller": 0,
        }.items()
    )


def check(received: Collector) -> None:
    """Every traced step has spans of both processes, and a trace of its own."""
    steps = [span for span in received.spans if span.name == "step"]
    assert sorted(span.attributes["psrt.step"] for span in steps) == [0, 8, 16]
    assert all(span.attributes["psrt.job"] == "small" for span in steps)
    for step in steps:
        services = {span.service for span in received.spans if span.trace == step.trace}
        assert services == {"psrt-trainer", "psrt-pserver"}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_collector_receives_the_spans_of_trainer_and_pserver(
    tmp_path: Path, protocol: str
) -> None:
    with collector() as received:
        is_grpc = protocol == "grpc"
        endpoint = received.grpc_endpoint if is_grpc else received.http_endpoint
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        }
        trained(tmp_path, variables)

        check(received)


def test_a_job_trains_to_its_end_without_its_collector(tmp_path: Path) -> None:
    output = trained(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})

    assert "test " in output
