"""`psrt init`: a job to start from, copied from a template into a new folder.

A template is a folder of `templates/`: a README whose title describes it, `job.toml`, the program,
and a script that makes data where no `psrt data` command does. Programs are those of `examples/`.
The Python function `psrt.init`, which gives a training script its role, is unrelated.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from psrt.cli import results
from psrt.core.errors import ConfigError

TEMPLATES = Path(__file__).with_name("templates")
DEFAULT = "ctr_dnn"

_EPILOG = f"""\b
Examples:
  psrt init my-job                          {DEFAULT}, trained by the commands of my-job/README.md
  psrt init --example fit_a_line my-job
  psrt init --list                          the examples there are
"""


def names() -> list[str]:
    """The templates, in alphabetical order."""
    return sorted(path.name for path in TEMPLATES.iterdir() if (path / "job.toml").is_file())


def title(name: str) -> str:
    """First line of a template's README, without its mark-up."""
    with (TEMPLATES / name / "README.md").open(encoding="utf-8") as lines:
        return next(lines).strip("# \n")


def _list(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked:
        return
    for name in names():
        results.write(f"{name:<12}{title(name)}")
    context.exit()


@click.command("init", epilog=_EPILOG)
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--example",
    type=click.Choice(names()),
    default=DEFAULT,
    show_default=True,
    help="The example to write.",
)
@click.option(
    "--list",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list,
    help="Print the examples and write nothing.",
)
def init(directory: Path, example: str) -> None:
    """Write a job to start from into a new folder.

    The folder receives a job file, its program and a README with the commands that make data and
    train, alone or on a cluster. A folder that holds files is refused.

    This command writes files and starts nothing; psrt.init(...) of Python is for training scripts.
    """
    try:
        written = copy(example, directory)
    except OSError as error:
        raise ConfigError(
            f"{error.filename or directory} cannot be written ({error.strerror}).",
            hint="Name a folder in a directory that may be written and has room.",
        ) from error
    click.echo(f"wrote {', '.join(written)} in {directory}")
    click.echo(f"next: cd {directory}, and the commands of README.md there")


def copy(example: str, directory: Path) -> list[str]:
    """Copy the files of a template into `directory`, which is made if missing; returns their names.

    Raises `ConfigError` if `directory` holds anything, and `OSError` if it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if present := sorted(path.name for path in directory.iterdir()):
        shown = ", ".join(present[:3]) + (", …" if len(present) > 3 else "")
        raise ConfigError(
            f"{directory} is not empty ({shown}). Nothing was written.",
            hint="Name a folder that does not exist yet, or an empty one.",
        )
    files = sorted(path for path in (TEMPLATES / example).iterdir() if path.is_file())
    for path in files:
        shutil.copyfile(path, directory / path.name)
    return [path.name for path in files]
