"""Files for Prometheus and Grafana: they parse, and name only metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from psrt.observe.catalogue import OF_PROCESSES, OF_PSERVERS, OF_TRAINERS
from psrt.observe.watching import FILES, list_of_metrics, text_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"
SUFFIXES = {"histogram": ("_bucket", "_count"), "summary": ("_sum", "_count")}
RULES = """
rule_files: [alerts.yml]
evaluation_interval: 10s
tests:
  - interval: 10s
    input_series:
      - {series: 'psrt_pserver_round_open_seconds{job="psrt", instance="a"}', values: "0 10 70 80"}
      - {series: 'psrt_pserver_round_open_seconds{job="psrt", instance="b"}', values: "0 1 0 1"}
      - {series: 'psrt_rejected_total{instance="a", reason="ACCESS_DENIED"}', values: "0 0 0 3"}
      - {series: 'process_resident_memory_bytes{instance="a"}', values: "95x30"}
      - {series: 'psrt_process_memory_limit_bytes{instance="a"}', values: "100x30"}
      - {series: 'psrt_pserver_ready{job="psrt", instance="c"}', values: "1 1 1 1"}
      - {series: 'up{job="psrt", instance="c"}', values: "1 1 1 0 0 0 0 0 0 0"}
      - {series: 'psrt_trainer_steps_total{instance="t"}', values: "5x60"}
      - {series: 'psrt_trainer_steps_total{instance="u"}', values: "5+1x60"}
      - {series: 'psrt_trainer_ready{instance="t"}', values: "1x60"}
      - {series: 'psrt_trainer_ready{instance="u"}', values: "1x60"}
    alert_rule_test:
      - {eval_time: 1m, alertname: PsrtTrainerStalled, exp_alerts: []}
      - {eval_time: 5m, alertname: PsrtTrainerStalled, exp_alerts: [
          {exp_labels: {severity: warning, instance: t}}]}
      - {eval_time: 30s, alertname: PsrtRoundStalled, exp_alerts: [
          {exp_labels: {severity: critical, job: psrt, instance: a}}]}
      - {eval_time: 10s, alertname: PsrtRoundStalled, exp_alerts: []}
      - {eval_time: 70s, alertname: PsrtPserverDown, exp_alerts: [
          {exp_labels: {severity: critical, job: psrt, instance: c}}]}
"""


def known() -> set[str]:
    """Names of all series."""
    return {"up"} | {
        spec.name + suffix
        for spec in (*OF_PROCESSES, *OF_PSERVERS, *OF_TRAINERS)
        for suffix in SUFFIXES.get(spec.kind, ("",))
    }


def expressions(node: Any) -> Iterator[str]:
    """Each PromQL expression of a dashboard."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "expr")
        for value in node.values():
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:psrt|process)_[a-z0-9_]+", text))


def test_the_dashboard_names_metrics_that_exist() -> None:
    found = list(expressions(json.loads(text_of("dashboard"))))

    assert len(found) >= 15
    assert metrics_in(" ".join(found)) - known() == set()


def test_the_alerts_name_metrics_that_exist() -> None:
    lines = [line for line in text_of("alerts").splitlines() if "expr:" in line]

    assert len(lines) == 8
    assert metrics_in(" ".join(lines)) - known() == set()


def test_the_page_lists_every_metric() -> None:
    assert list_of_metrics() in PAGE.read_text(), "write it again: psrt metrics list"


needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")


def promtool(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_accepts_the_alerts_and_every_expression(tmp_path: Path) -> None:
    (tmp_path / FILES["alerts"]).write_text(text_of("alerts"))
    rules = [
        {"record": f"dashboard:expression:{number}", "expr": re.sub(r"[$]\w+", ".*", each)}
        for number, each in enumerate(expressions(json.loads(text_of("dashboard"))))
    ]
    named = tmp_path / "dashboard.yml"
    named.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))

    promtool(tmp_path, "check", "rules", FILES["alerts"], named.name)


@needs_promtool
def test_a_stalled_round_and_a_pserver_that_is_gone_raise_alerts(tmp_path: Path) -> None:
    (tmp_path / FILES["alerts"]).write_text(text_of("alerts"))
    plain = re.sub(r"\n +annotations:\n +summary:.*\n +description:.*", "", text_of("alerts"))
    (tmp_path / "alerts.yml").write_text(plain)  # the expected alerts then have labels alone
    (tmp_path / "test.yml").write_text(RULES)

    promtool(tmp_path, "test", "rules", "test.yml")
