"""Options that `psrt data` commands share, and the report of those that write files."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from psrt.config.sections import DATA_FORMATS
from psrt.core.errors import ConfigError
from psrt.data.convert import PARTS, Destination, ShardedWriter, Split, criteo, libsvm
from psrt.data.formats import Format, format_named
from psrt.data.slots import Slot


def destination_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --out, --files, --gzip and --replace, given to `command` as one `destination`."""

    @click.option(
        "--out",
        required=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory to write to; made if missing.",
    )
    @click.option(
        "--files",
        default=2,
        show_default=True,
        type=click.IntRange(1, 10_000),
        help="Files per part; at least one per trainer.",
    )
    @click.option("--gzip", "gzipped", is_flag=True, help="Write .txt.gz files.")
    @click.option(
        "--replace", is_flag=True, help="Remove the train-* and test-* files now in --out."
    )
    @functools.wraps(command)
    def with_destination(
        *, out: Path, files: int, gzipped: bool, replace: bool, **others: Any
    ) -> None:
        command(destination=Destination(out, files, gzipped, replace), **others)

    return with_destination


def split_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --test-fraction and --seed, given to `command` as one `split`."""

    @click.option(
        "--test-fraction",
        default=0.1,
        show_default=True,
        type=click.FloatRange(0, 1, max_open=True),
        help="Share of the rows that go to the test files, by a hash of the row and the seed.",
    )
    @click.option("--seed", default=0, show_default=True, help="Another seed, other rows.")
    @functools.wraps(command)
    def with_split(*, test_fraction: float, seed: int, **others: Any) -> None:
        command(split=Split(test_fraction, seed), **others)

    return with_split


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --job, --slots, --format and --option, given to `command` as one `format`."""

    @click.option("--job", metavar="JOB.toml", help="Read the files as this job does.")
    @click.option(
        "--slots",
        metavar="NAME:DTYPE[:SIZE],…",
        help="The slots: DTYPE is uint64 or float, no SIZE is any number.",
    )
    @click.option(
        "--format",
        "name",
        default="multislot",
        show_default=True,
        type=click.Choice(DATA_FORMATS),
        help="What the files are. libsvm and criteo have slots of their own without --slots.",
    )
    @click.option(
        "--option",
        "options",
        multiple=True,
        metavar="KEY=VALUE",
        help="Of the format, in TOML, as in [data.options] and [data.columns].",
    )
    @functools.wraps(command)
    def with_format(
        *, job: str | None, slots: str | None, name: str, options: tuple[str, ...], **others: Any
    ) -> Any:
        return command(format=format_given(job, slots, name, options), **others)

    return with_format


def format_given(
    job: str | None, slots: str | None, name: str = "multislot", options: Sequence[str] = ()
) -> Format:
    """Return the format of --job, or of --format and --slots; raises `ConfigError` otherwise."""
    own = {"libsvm": libsvm.SLOTS, "criteo": criteo.slots()}.get(name, ())
    if not job and (slots or own):
        of_slots = [slot_in(text) for text in slots.split(",")] if slots else own
        return format_named(name, of_slots, _options(options), "--option")
    if not job or slots:
        raise ConfigError(
            "the files are read by --job JOB.toml or by --slots NAME:DTYPE:SIZE,…: give one.",
            hint="For example --slots click:float:1,dense:float:13,ids:uint64",
        )
    # Only now: a program is built, which --slots does not need.
    from psrt.config.load import load_job
    from psrt.trainer.inputs import format_of
    from psrt.trainer.inputs import load_job as build

    return format_of(build(load_job(job).config))


def _options(given: Sequence[str]) -> dict[str, Any]:
    try:
        return tomllib.loads("\n".join(given))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"--option {' '.join(given)}: {error}.", hint="For example --option 'delimiter = \"|\"'"
        ) from error


def slot_in(text: str) -> Slot:
    """Return the slot of a text as `ids:uint64` or `dense:float:13`; raises `ConfigError`."""
    name, _, kind = text.strip().partition(":")
    dtype, _, size = kind.partition(":")
    if not name or dtype not in ("uint64", "float") or not (size.isdecimal() or not size):
        raise ConfigError(
            f"--slots: {text!r} is not NAME:DTYPE or NAME:DTYPE:SIZE.",
            hint="DTYPE is uint64 or float; leave SIZE out for any number of values.",
        )
    return Slot(name, "float" if dtype == "float" else "uint64", int(size) if size else None)


def in_words(slots: tuple[Slot, ...]) -> str:
    """Describe slots: `label (1 float), ids (any number of ids)`."""
    kinds = {"float": "float", "uint64": "id"}
    sizes = {slot.name: "any number of" if slot.size is None else slot.size for slot in slots}
    return ", ".join(
        f"{slot.name} ({sizes[slot.name]} {kinds[slot.dtype]}{'' if slot.size == 1 else 's'})"
        for slot in slots
    )


def report_written(writer: ShardedWriter, slots: str, positives: str = "") -> None:
    """Print what was written, and the lines of a job file that read it."""
    parts = [part for part in PARTS if writer.rows[part]]
    for part in parts:
        rows = writer.rows[part]
        rate = f", {100 * writer.clicks[part] / rows:.1f} % {positives}" if positives else ""
        names = f"{writer.paths(part)[0]} … {writer.paths(part)[-1].name}"
        click.echo(f"{part}: {rows:,} rows{rate}, in {names}")
    click.echo(f"slots: {slots}")
    click.echo("next: put these lines into your job file and run `psrt launch` on it")
    click.echo("  [data]")
    for part in parts:
        pattern = writer.paths(part)[0].resolve().with_name(f"{part}-*{_suffix(writer)}")
        click.echo(f'  {part} = ["{pattern}"]')


def _suffix(writer: ShardedWriter) -> str:
    return ".txt.gz" if writer.destination.gzipped else ".txt"
