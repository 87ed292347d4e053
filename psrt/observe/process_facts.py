"""Metrics that all processes have: version and memory limit."""

from __future__ import annotations

import platform

import psrt
from psrt.core.process import memory_limit_bytes
from psrt.observe.metric_page import MetricPage


def add_process_facts(page: MetricPage, role: str) -> None:
    """Add what pservers and trainers have in common, except for the `process_` metrics."""
    page.add("psrt_build_info", 1, role, psrt.__version__, platform.python_version())
    page.add("psrt_process_memory_limit_bytes", memory_limit_bytes())
