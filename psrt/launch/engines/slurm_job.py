"""A launch as a job of Slurm: its batch script, which runs the launch again within the job.

That launch makes a cut and ends before the time limit, and asks Slurm to queue the job again; a job
that Slurm starts again goes on with its newest cut.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from psrt.config.load import environment
from psrt.core import whole_file
from psrt.core.errors import JobError
from psrt.launch.cluster import captured
from psrt.launch.engines.slurm import ALLOCATION, described_steps, run_command
from psrt.launch.own_flags import own_flags
from psrt.launch.plan import Plan
from psrt.launch.processes import die_with_parent

LIMIT_SIGNAL = signal.SIGUSR1
_BEFORE_LIMIT_S = 120
_TURN_S = 0.5

Say = Callable[[str], None]


def described(plan: Plan) -> str:
    """The batch script, or within an allocation its steps and processes."""
    environ = environment()
    if ALLOCATION in environ:
        return described_steps(plan, environ, run_command)
    return batch_script(plan)


def batch_script(plan: Plan) -> str:
    """Return the script of a job with two components: pservers, then trainers."""
    config = plan.config
    lines = ["#!/bin/bash"]
    lines += _directives(
        f"--job-name={Path(config.job).stem}",
        f"--output={Path(config.log_dir) / 'slurm-%j.log'}",
        "--open-mode=append",
        "--requeue",
        *([f"--signal=B:{LIMIT_SIGNAL.name[3:]}@{_BEFORE_LIMIT_S}"] if plan.cut_s else []),
        f"--ntasks={config.pservers}",
        *_grouped(shlex.split(config.slurm)),
    )
    lines += ["#SBATCH hetjob"]
    lines += _directives(
        "--requeue",
        f"--ntasks={config.trainers}",
        f"--cpus-per-task={config.cpu_threads * config.cpu_num}",
        *_grouped(shlex.split(config.slurm)),
    )
    return "\n".join([*lines, *_launch_lines(plan)])


def _launch_lines(plan: Plan) -> list[str]:
    """The launch within the job; one that is started again goes on with its newest cut."""
    config = plan.config
    flags = own_flags(config, without=("resume", "slurm"))
    launch = shlex.join([config.python or sys.executable, "-m", "psrt", "launch", *flags[:-1]])
    resume = shlex.quote(f"--resume={config.resume}") if config.resume else ""
    lines = [f"trap '' {LIMIT_SIGNAL.name[3:]}  # until psrt handles it", f"resume={resume}"]
    if plan.cut_s:
        lines += ['[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && resume=--resume=auto']
    given = f" -- {shlex.join(plan.arguments)}" if plan.arguments else ""
    return [*lines, f"exec {launch} $resume {shlex.quote(flags[-1])}{given}"]


def submit(plan: Plan, say: Say) -> int | None:
    """Submit the job and follow it to its end; None within an allocation, which needs no other.

    Returns 0, or 128 + n after signal n. Raises `JobError` if the job fails or is refused.
    """
    environ = environment()
    if ALLOCATION in environ:
        return None
    script = Path(plan.config.log_dir) / "job.sbatch"
    whole_file.write(script, batch_script(plan) + "\n")
    signals: list[int] = []
    with captured(signals), _submitted(script) as sbatch:
        job = _number(sbatch, script)
        log = Path(plan.config.log_dir) / f"slurm-{job}.log"
        say(f"Slurm has job {job}; its log is {log}")
        code = _followed(sbatch, job, LogTail(log, say), signals)
    if signals:
        return 128 + signals[0]
    if code:
        raise JobError(
            f"job {job} of Slurm ended with code {code}.",
            hint=f"Read {log}, and the other logs in its directory.",
        )
    return 0


def requeue(say: Say) -> None:
    """Ask Slurm to queue the job that this process is in again."""
    job = environment()[ALLOCATION]
    say(f"the time limit of job {job} is near: it is queued again and goes on from its newest cut")
    run_command(["scontrol", "requeue", job])


class LogTail:
    """Passes on the lines that are appended to a file."""

    def __init__(self, path: Path, say: Say) -> None:
        self._path, self._say = path, say
        self._position, self._rest = 0, ""

    def pump(self) -> None:
        """Pass on lines that are complete."""
        with contextlib.suppress(FileNotFoundError), self._path.open(errors="replace") as file:
            file.seek(self._position)
            *lines, self._rest = (self._rest + file.read()).split("\n")
            self._position = file.tell()
            for line in lines:
                self._say(line)


def _directives(*flags: str) -> list[str]:
    return [f"#SBATCH {flag}" for flag in flags]


def _grouped(words: list[str]) -> list[str]:
    """Flags with their values: `--time 1:00` are two words of one flag."""
    grouped: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if word.startswith("-"):
            grouped.append(flag + equals + (shlex.quote(value) if equals else ""))
        else:
            grouped.append(f"{grouped.pop() if grouped else ''} {shlex.quote(word)}".strip())
    return grouped


@contextlib.contextmanager
def _submitted(script: Path) -> Iterator[subprocess.Popen[str]]:
    """`sbatch` on a script, which waits for the end of the job."""
    words = ["sbatch", "--wait", "--parsable", str(script)]
    try:
        process = subprocess.Popen(
            words,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=die_with_parent,
        )
    except OSError as error:
        raise JobError(
            f"sbatch cannot be run: {error}.", hint="Is this a host of a Slurm cluster?"
        ) from error
    with process:
        try:
            yield process
        finally:
            process.kill()


def _number(sbatch: subprocess.Popen[str], script: Path) -> str:
    """The number of the job, which `sbatch` prints at once; raises `JobError` if it is refused."""
    assert sbatch.stdout is not None
    assert sbatch.stderr is not None
    line = sbatch.stdout.readline()
    if not line:
        raise JobError(
            f"Slurm refuses the job: {sbatch.stderr.read().strip()}",
            hint=f"The script is {script}; flags of sbatch go into --slurm.",
        )
    return line.strip().partition(";")[0]


def _followed(sbatch: subprocess.Popen[str], job: str, tail: LogTail, signals: list[int]) -> int:
    """Pass on the log until the job has ended; the first signal ends it, a second one at once."""
    asked = 0
    while sbatch.poll() is None:
        tail.pump()
        if len(signals) > asked:
            asked = len(signals)
            _ask_to_end(job, at_once=asked > 1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            sbatch.wait(_TURN_S)
    tail.pump()
    return sbatch.returncode


def _ask_to_end(job: str, at_once: bool) -> None:
    """Let a running job make its cut and end; cancel one that waits for its turn."""
    state = run_command(["squeue", "--noheader", "--format=%T", f"--jobs={job}"]).split()
    runs = "RUNNING" in state
    if runs and not at_once:
        run_command(["scancel", "--batch", "--signal=TERM", job])
    else:
        run_command(["scancel", job])
