"""The `psrt` group: its subcommands, and exit codes of a psrt process.

Subcommands are imported when they run, so `psrt --help` stays quick and a pserver never loads
trainer code. Exit codes: 0 success, 2 wrong usage, 128 + n ended by signal n, 130 Ctrl-C; errors of
the catalogue have the codes of docs/reference/errors.md. Messages go to stderr.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

import psrt as package
from psrt.cli.lazy import LazyGroup, Subcommand
from psrt.cli.options import dashed
from psrt.config.load import debug, is_debugging
from psrt.config.older_flags import instead_of
from psrt.core.errors import ConfigError, ErrorCode, InternalError, PsrtError
from psrt.core.hints import did_you_mean

INTERRUPTED = 130
_EPILOG = """\b
A job to start from, with the commands that train it in its README:
  psrt init my-job
A cluster on this host, from a job file to a saved model:
  psrt launch --pservers 2 --trainers 2 --save model/ ctr_dnn.toml
  psrt predict model/ data/test-00000.txt
The same by hand, one process per terminal or host:
  psrt pserver --port 6170
  psrt trainer --endpoints 127.0.0.1:6170 ctr_dnn.toml
"""


SUBCOMMANDS = {
    "init": Subcommand("psrt.cli.init", "init", "Write a job to start from into a new folder."),
    "pserver": Subcommand("psrt.cli.pserver", "pserver", "Run one pserver."),
    "trainer": Subcommand(
        "psrt.cli.trainer", "trainer", "Run one trainer, of a job file or a script."
    ),
    "launch": Subcommand("psrt.cli.launch", "launch", "Run a job or a script on a cluster."),
    "plot": Subcommand(
        "psrt.cli.plot",
        "plot",
        "Draw the curves of trainings: progress as lines, validations as dots.",
    ),
    "plan": Subcommand(
        "psrt.cli.plan",
        "plan",
        "Show the placement of parameters on pservers, or the number of pservers a job needs.",
    ),
    "predict": Subcommand(
        "psrt.cli.predict", "predict", "Apply a saved model to data files, a line per example."
    ),
    "export": Subcommand(
        "psrt.cli.models", "export", "Write a saved model, or a table of it, for other programs."
    ),
    "inspect": Subcommand(
        "psrt.cli.models", "inspect", "Show what a saved model, a cut or a running job holds."
    ),
    "graph": Subcommand("psrt.cli.graph", "graph", "Show the program of a job, as text or drawn."),
    "status": Subcommand(
        "psrt.cli.operating.status",
        "status",
        "Show a running job: its pservers, rates, and who waits for whom.",
    ),
    "doctor": Subcommand(
        "psrt.cli.operating.doctor", "doctor", "Find what is wrong with this host or a running job."
    ),
    "metrics": Subcommand(
        "psrt.cli.operating.metrics",
        "metrics",
        "Print alert rules of Prometheus, a dashboard of Grafana, or the list of metrics.",
    ),
    "scale": Subcommand(
        "psrt.cli.operating.scale", "scale", "Change the number of trainers of a running job."
    ),
    "token": Subcommand(
        "psrt.cli.token", "token", "Make, list and revoke the tokens of a cluster."
    ),
    "checkpoint": Subcommand(
        "psrt.cli.checkpoint",
        "checkpoint",
        "Show, check, compare, export, make and delete the cuts of jobs.",
    ),
    "service": Subcommand(
        "psrt.cli.service", "service", "Run pservers and trainers as services of systemd."
    ),
    "data": Subcommand("psrt.cli.data", "data", "Make training files and inspect them."),
    "bench": Subcommand(
        "psrt.cli.bench",
        "bench",
        "Measure psrt on this machine and compare it with the machine's limits.",
    ),
    "config": Subcommand("psrt.cli.config", "config", "Show settings and where they come from."),
    "version": Subcommand("psrt.cli.version", "version", "Print versions of psrt and its parts."),
}


class TopGroup(LazyGroup):
    """The commands of psrt: each has `--debug`; the error of an unknown one names the nearest."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        command = super().get_command(ctx, name)
        if command is not None and all(option.name != "debug" for option in command.params):
            command.params.append(_debug_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.get_command(ctx, dashed(args[0]))
        if known is None and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = did_you_mean(args[0], SUBCOMMANDS, "psrt --help lists the commands.")
            raise click.UsageError(f"psrt has no command {args[0]!r}. {near}", ctx)
        return super().resolve_command(ctx, args)


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, option, given: debug() if given else None,
        help="Print the whole traceback of an error, also that of PSRT_DEBUG=1.",
    )


@click.group(
    cls=TopGroup,
    subcommands=SUBCOMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": dashed},
)
@click.version_option(package.__version__, message="psrt %(version)s")
def psrt() -> None:
    """psrt, a parameter-server cluster runtime.

    Trainers run a program, pservers hold its parameters and apply the optimizer. Each command has
    its own --help with an example. Flags may be written with underscores: --ports_num is
    --ports-num.
    """


def main() -> None:
    """Run the `psrt` script and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code of the process.

    A command may return its exit code; None means success.
    """
    try:
        code = psrt.main(list(arguments), prog_name="psrt", standalone_mode=False)
    except PsrtError as error:
        if is_debugging():
            traceback.print_exception(error)
        click.echo(error.full_text(), err=True)
        return error.spec.exit_code
    except click.ClickException as error:
        return _wrong_usage(error)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return _stdout_closed()
    except Exception as error:
        return _defect(error)
    return code if isinstance(code, int) else 0


def _wrong_usage(error: click.ClickException) -> int:
    """Print the error; for a flag of PaddlePaddle's v2, print its replacement."""
    flag = error.option_name if isinstance(error, click.NoSuchOption) else ""
    if not (instead := instead_of(flag)):
        error.show()
        return error.exit_code
    failure = ConfigError(
        f"{flag} is a flag of PaddlePaddle's v2 that this command of psrt does not have.",
        code=ErrorCode.CONFIG_UNKNOWN_KEY,
        hint=instead,
    )
    click.echo(failure.full_text(), err=True)
    return failure.spec.exit_code


def _stdout_closed() -> int:
    """End quietly when the reader of the output has left (`psrt config reference | head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _defect(error: Exception) -> int:
    traceback.print_exception(error)
    failure = InternalError(
        f"{type(error).__name__}: {error}",
        hint="This is a defect in psrt: please report it with the lines above.",
    )
    click.echo(failure.full_text(), err=True)
    return failure.spec.exit_code
