"""Every metric of psrt: name, type, labels and help.

Names follow Prometheus: one prefix, base units, the unit last, `_total` for counters. Labels have
few values: methods and reasons are those of the catalogue of calls and errors, trainers and tables
beyond a limit share one value (`OTHERS`). `docs/reference/metrics.md` lists the same, by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "summary"]

OTHERS = "others"
"""The label value of all trainers or tables beyond the limit."""
MOST_TRAINERS = 64
MOST_TABLES = 200


@dataclass(frozen=True)
class MetricSpec:
    """One metric; its series differ by the values of `labels`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


OF_PROCESSES = (
    MetricSpec("psrt_build_info", "gauge", "Always 1.", ("role", "version", "python")),
    MetricSpec(
        "psrt_process_memory_limit_bytes",
        "gauge",
        "Memory that this process may use: of its control group, else of the host.",
    ),
    MetricSpec(
        "psrt_process_gil_wait_seconds_total",
        "counter",
        "Time that a probe, a thread that does nothing else, waited for the interpreter's lock.",
    ),
    MetricSpec(
        "psrt_process_gil_probes_total",
        "counter",
        "How often the probe asked for it, four times a second; the ratio is the mean wait.",
    ),
    MetricSpec("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes."),
    MetricSpec("process_resident_memory_bytes", "gauge", "Resident memory size in bytes."),
    MetricSpec("process_start_time_seconds", "gauge", "Start time of the process since 1970."),
    MetricSpec("process_cpu_seconds_total", "counter", "User and system CPU time spent."),
    MetricSpec("process_open_fds", "gauge", "Number of open file descriptors."),
    MetricSpec("process_max_fds", "gauge", "Maximum number of open file descriptors."),
)
"""Metrics of pservers and trainers; names that begin with `process_` are standard ones."""

OF_PSERVERS = (
    MetricSpec("psrt_pserver_info", "gauge", "Always 1.", ("job", "mode")),
    MetricSpec("psrt_pserver_ready", "gauge", "1 while the pserver serves, as /readyz says."),
    MetricSpec("psrt_pserver_tables", "gauge", "Tables, blocks among them.", ("kind",)),
    MetricSpec("psrt_pserver_tables_loading", "gauge", "Tables that are being filled from a cut."),
    MetricSpec("psrt_pserver_rows", "gauge", "Rows of sparse tables.", ("table",)),
    MetricSpec(
        "psrt_pserver_memory_bytes",
        "gauge",
        "Memory of tables: stored = values and optimizer state, waiting = ids that wait for "
        "admission. All dense blocks share the table 'dense'.",
        ("table", "kind"),
    ),
    MetricSpec("psrt_pserver_calls_total", "counter", "Calls handled."),
    MetricSpec(
        "psrt_pserver_call_duration_seconds",
        "histogram",
        "Time from a complete request to its reply, waits for other trainers included.",
        ("method",),
    ),
    MetricSpec("psrt_rejected_total", "counter", "Calls answered with an error.", ("reason",)),
    MetricSpec("psrt_pserver_pushes_total", "counter", "Pushes applied."),
    MetricSpec(
        "psrt_pserver_pushes_repeated_total", "counter", "Pushes that came again, not applied."
    ),
    MetricSpec("psrt_pserver_pushed_rows_total", "counter", "Rows updated by pushes.", ("table",)),
    MetricSpec("psrt_pserver_pushed_blocks_total", "counter", "Dense blocks updated by pushes."),
    MetricSpec("psrt_pserver_pulled_rows_total", "counter", "Rows read by trainers."),
    MetricSpec("psrt_pserver_pulled_blocks_total", "counter", "Dense blocks read by trainers."),
    MetricSpec("psrt_pserver_dropped_rows_total", "counter", "Rows dropped by sweeps."),
    MetricSpec("psrt_pserver_apply_seconds_total", "counter", "Time spent in applying gradients."),
    MetricSpec("psrt_pserver_rounds_total", "counter", "Synchronous rounds applied."),
    MetricSpec("psrt_pserver_round", "gauge", "Number of the open synchronous round."),
    MetricSpec(
        "psrt_pserver_round_open_seconds",
        "gauge",
        "Time since the first push of the open round; 0 = no push has come.",
    ),
    MetricSpec(
        "psrt_pserver_round_wait_seconds",
        "summary",
        "Time by which the push of a trainer came after the first one of its round.",
        ("trainer",),
    ),
    MetricSpec(
        "psrt_pserver_wait_seconds_total",
        "counter",
        "Time that calls waited for other trainers: round = for a round, clock = on a clock.",
        ("on",),
    ),
    MetricSpec("psrt_pserver_step", "gauge", "Mini-batches of all trainers, except in sync."),
    MetricSpec("psrt_pserver_trainers", "gauge", "Trainers of the job.", ("state",)),
    MetricSpec(
        "psrt_push_staleness_steps",
        "histogram",
        "Updates of a table between the pull and the push of a gradient.",
    ),
    MetricSpec(
        "psrt_pserver_durable_lag_pushes",
        "gauge",
        "Pushes of a trainer that are applied and not durable, if durability of [job] is not none.",
        ("trainer",),
    ),
    MetricSpec(
        "psrt_pserver_durable_age_seconds",
        "gauge",
        "Time since the newest confirmation that pushes are durable.",
    ),
    MetricSpec(
        "psrt_last_cut_timestamp_seconds",
        "gauge",
        "Time since 1970 at which this process saw the newest cut complete.",
    ),
)
"""Metrics of a pserver alone. What is not known, such as the time of a first cut, is left out."""

OF_TRAINERS = (
    MetricSpec("psrt_trainer_info", "gauge", "Always 1.", ("job", "mode", "trainer")),
    MetricSpec("psrt_trainer_ready", "gauge", "1 from the first batch on, as /readyz says."),
    MetricSpec("psrt_trainer_steps_total", "counter", "Mini-batches trained."),
    MetricSpec("psrt_trainer_examples_total", "counter", "Examples trained."),
    MetricSpec("psrt_trainer_epoch", "gauge", "Number of the running epoch, from 1."),
    MetricSpec("psrt_trainer_loss", "gauge", "Mean loss of the steps of the last progress line."),
    MetricSpec("psrt_trainer_auc", "gauge", "Area under the ROC curve of the same steps."),
    MetricSpec("psrt_trainer_step_duration_seconds", "histogram", "Time of a whole step."),
    MetricSpec(
        "psrt_trainer_call_duration_seconds",
        "histogram",
        "Time of a call to a pserver, retries included: pull_rows, pull_dense, push, exchange = "
        "push, round and pull in one, meet.",
        ("call",),
    ),
    MetricSpec(
        "psrt_trainer_wait_seconds_total",
        "counter",
        "Time that steps waited: data = for the next batch, pservers = for calls, queue = for room "
        "for gradients, trainers = for slower trainers (ssp).",
        ("on",),
    ),
    MetricSpec("psrt_trainer_pushed_bytes_total", "counter", "Bytes of tensors sent to pservers."),
    MetricSpec("psrt_trainer_pulled_bytes_total", "counter", "Bytes of tensors received."),
    MetricSpec(
        "psrt_trainer_queued_gradients", "gauge", "Gradients that wait to be pushed (async, ssp)."
    ),
    MetricSpec(
        "psrt_trainer_staleness_steps",
        "gauge",
        "Ended steps of this trainer that are not in the parameters yet.",
    ),
    MetricSpec(
        "psrt_trainer_durable_lag_pushes",
        "gauge",
        "Pushes that this trainer keeps because they are not durable yet.",
    ),
    MetricSpec("psrt_trainer_retained_bytes", "gauge", "Memory of these pushes."),
)
"""Metrics of a trainer alone."""
