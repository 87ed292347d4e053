"""A launch from its settings to its report, the same for every engine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from psrt.config.load import Loaded, environment, load_job
from psrt.config.sections import JobConfig, LaunchConfig
from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import ConfigError, PsrtError
from psrt.core.quantities import counted
from psrt.launch import report, run_directory
from psrt.launch.cluster import Cluster, Say
from psrt.launch.engines import TABLE, EngineKind
from psrt.launch.groups import described, free_ports, group_commands, group_size, is_group
from psrt.launch.outputs import check_report, make_directory, write_report, write_text
from psrt.launch.plan import PSRT, Plan, check_restarts, is_script
from psrt.launch.plan_text import commands_text
from psrt.launch.replacements import RECOVER
from psrt.launch.scripts import ScriptPlan, script_job
from psrt.launch.supervise import Supervisor

REPORT, PLAN = "report.json", "plan.txt"


def run(
    loaded: Loaded[LaunchConfig],
    *,
    say: Say,
    program: Sequence[str] = PSRT,
    clock: Clock | None = None,
    dry_run: bool = False,
    arguments: Sequence[str] = (),
) -> int:
    """Run a job to its end; returns 0 for success, 128 + n if signal n ended it.

    A script gets the `arguments`. A `dry_run` prints what would be started, and starts and writes
    nothing. Raises `JobError` when a child failed, `DeadlineError` when the pservers did not get
    ready.
    """
    config, clock, kind = loaded.config, clock or MonotonicClock(), TABLE[loaded.config.on]
    # A mistake in the job raises here, not in the log of every child.
    job = script_job(config) if is_script(config) else load_job(config.job).config
    check_restarts(config, job)
    has_group = is_group(config, job)
    directory_at = partial(run_directory.directory_for if dry_run else run_directory.make, config)
    if not dry_run:
        make_directory("report", str(Path(config.report).parent))
        make_directory("profile", str(Path(config.profile).parent))
        check_report(config.report)
    directory = directory_at(job.name, datetime.now())
    loaded = replace(loaded, config=replace(config, log_dir=str(directory)))
    plan = _plan(loaded, program, arguments, "" if dry_run else secrets.token_hex(8))
    if dry_run:
        say(described(plan) if has_group else kind.describe(plan))
        return 0
    if kind.submit is not None and (code := kind.submit(plan, say)) is not None:
        return code
    with run_directory.held(directory):
        return _run(plan, kind, job, clock, say, _train_group if has_group else _train)


def _plan(
    loaded: Loaded[LaunchConfig], program: Sequence[str], arguments: Sequence[str], run: str
) -> Plan:
    if is_script(loaded.config):
        return ScriptPlan(loaded, environment(), arguments, program)
    return Plan(loaded, environment(), program, run)


def _run(
    plan: Plan,
    kind: EngineKind,
    job: JobConfig,
    clock: Clock,
    say: Say,
    train: Callable[[Cluster, Plan, Say], None],
) -> int:
    """Run the processes of a plan to their end, from their start by `train`."""
    config = plan.config
    cluster = _cluster(kind, plan, job, clock, say)
    error, started_at = None, clock.now()
    try:
        with cluster:
            train(cluster, plan, say)
        cluster.check()
    except PsrtError as failed:
        error = failed
    code = error.spec.exit_code if error else cluster.exit_code
    say(f"\n{report.table(cluster.processes)}")
    facts = report.merged(cluster.processes, code, clock.now() - started_at)
    try:
        for path in filter(None, (str(Path(config.log_dir) / REPORT), config.report)):
            write_report(path, facts)
    except ConfigError as unwritten:
        say(unwritten.message)
        error = error or unwritten
    if error:
        raise error
    if cluster.has_met_limit and kind.again is not None:
        kind.again(say)
    return code


def _cluster(kind: EngineKind, plan: Plan, job: JobConfig, clock: Clock, say: Say) -> Cluster:
    config, engine = plan.config, kind.make(plan, say)
    recoveries = config.recoveries if job.retained_bytes > 0 else 0
    stands_by = config.standby and engine.can_stand_by
    limits = config.grace_s, plan.cut_s, recoveries, config.restarts
    supervisor = Supervisor(*limits, stands_by, plan.outlived_s)
    # With backups a pserver that is started again is empty: it becomes a backup itself.
    again = () if job.durability == "replica" else (RECOVER,)
    limit = kind.limit_signal if plan.cut_s else None
    return Cluster(engine, supervisor, clock, say, again, limit)


def _train(cluster: Cluster, plan: Plan, say: Say) -> None:
    config = plan.config
    if cluster.wait_open(config.ready_timeout_s):
        write_text(config.log_dir, PLAN, commands_text(plan, cluster.host_of))
        cluster.start(plan.pservers(cluster.host_of))
        say(f"started {counted(config.pservers, 'pserver')}; logs are in {config.log_dir}")
    endpoints = cluster.wait_ready(config.ready_timeout_s)
    if endpoints:
        trainers_of = partial(plan.trainers, endpoints, host_of=cluster.host_of)
        cluster.start(trainers_of())
        if plan.cut_s:
            cluster.follow_resizes(trainers_of, config.trainers)
        trainers = counted(config.trainers, "trainer")
        say(f"pservers serve on {', '.join(endpoints)}; started {trainers}")
    cluster.wait_ended()


def _train_group(cluster: Cluster, plan: Plan, say: Say) -> None:
    trainers = group_size(plan.config)
    cluster.start(group_commands(plan, free_ports(trainers)))
    started = counted(trainers, "trainer")
    say(f"started {started} without pservers; logs are in {plan.config.log_dir}")
    cluster.wait_ended()
