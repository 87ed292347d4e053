"""`psrt graph`: the program of a job as text or as a drawing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click

from psrt.cli import results
from psrt.config.load import load_job
from psrt.core.errors import ConfigError

_DRAWN = (".svg", ".png", ".pdf")
_EPILOG = """\b
Examples:
  psrt graph examples/ctr_dnn/ctr_dnn.toml             ops, shapes, parameters, as text
  psrt graph --role all ctr_dnn.toml                   backward and optimizer too
  psrt graph --format dot --out graph.dot ctr_dnn.toml for Graphviz
  psrt graph --out graph.svg ctr_dnn.toml              drawn, if Graphviz is installed
"""


@click.command(epilog=_EPILOG)
@click.argument("job", metavar="JOB.toml", type=click.Path())
@click.option(
    "--out",
    default="-",
    metavar="FILE",
    help="File to write; - = standard output. Graphviz's `dot` draws .svg, .png and .pdf.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "dot")),
    default=None,
    help="text: a line per op and per parameter; dot: input for Graphviz.  "
    "[default: by the name of --out, else text]",
)
@click.option(
    "--role",
    type=click.Choice(("forward", "all")),
    default="forward",
    show_default=True,
    help="Ops to show: forward = those of a prediction; all = also gradients and updates.",
)
def graph(job: str, out: str, form: str | None, role: str) -> None:
    """Show the program of a job, as text or drawn.

    Runs build() of the job, without training and without reading data. The text ends with the
    parameters that pservers will hold, with optimizers and sizes.
    """
    drawn = Path(out).suffix in _DRAWN
    if drawn and form == "text":
        raise ConfigError(
            f"--format text cannot be written to {out}, which is a drawing.",
            hint="Leave out --format, or name a .txt file.",
        )
    dot = _graphviz(out) if drawn else ""
    is_dot = drawn or (form or Path(out).suffix.removeprefix(".")) == "dot"
    text = _rendered(job, is_dot, role)
    if out == "-":
        results.write(text, nl=False)
    elif drawn:
        _draw(dot, text, out)
    else:
        _write(out, text)


def _rendered(job: str, as_dot: bool, role: str) -> str:
    config = load_job(job).config
    # Imported here, because numba takes a second to load and a mistake in a flag should not.
    from psrt.graph import render
    from psrt.graph.program import ROLES
    from psrt.trainer.inputs import load_job as build

    roles = ROLES if role == "all" else ROLES[:1]
    show = render.to_dot if as_dot else render.to_text
    return show(build(config).program, roles)


def _write(out: str, text: str) -> None:
    try:
        Path(out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"the graph cannot be written to {out} ({error.strerror}).",
            hint="Give --out a file in a directory that exists and may be written.",
        ) from error


def _graphviz(out: str) -> str:
    """The path of `dot`."""
    dot = shutil.which("dot")
    if dot is None:
        raise ConfigError(
            f"{out} can only be drawn by Graphviz, and there is no program `dot` on this host.",
            hint="Install Graphviz, or write DOT with `psrt graph --out graph.dot JOB.toml` and "
            "draw it elsewhere: `dot -Tsvg graph.dot -o graph.svg`.",
        )
    return dot


def _draw(dot: str, text: str, out: str) -> None:
    form = Path(out).suffix.removeprefix(".")
    done = subprocess.run(
        [dot, f"-T{form}", "-o", out], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ConfigError(
            f"Graphviz could not draw {out}: {done.stderr.strip()}",
            hint="Give --out a file in a directory that exists and may be written.",
        )
