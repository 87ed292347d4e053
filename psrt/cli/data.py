"""`psrt data`: make the files a job trains on, and say what to do with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from psrt.cli.progress import progress
from psrt.data import criteo as criteo_table
from psrt.data import idx, synthetic
from psrt.data import libsvm as libsvm_text
from psrt.data.files import expand, text_bytes
from psrt.data.multislot import Slot
from psrt.data.sharded import PARTS, Destination, ShardedWriter, Split

_EXAMPLES = """\b
Examples:
  psrt data synth-ctr --out data/synth --rows 200000 --files 2
  psrt data criteo train.tsv.gz --out data/criteo --files 2
  psrt data libsvm a9a --test a9a.t --out data/a9a
  psrt data mnist train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out data/mnist
"""
_CRITEO_SLOTS = "click (1 float), dense_input (13 floats)"


@click.group(epilog=_EXAMPLES)
def data() -> None:
    """Make training files.

    All commands write MultiSlot text, train-00000.txt … and test-00000.txt …, and print the lines
    of a job file that read it.
    """


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
    """Add --test-fraction and --seed, given to `command` by these names."""
    fraction = click.option(
        "--test-fraction",
        default=0.1,
        show_default=True,
        type=click.FloatRange(0, 1, max_open=True),
        help="Share of the rows that go to the test files, by a hash of the row and the seed.",
    )
    seed = click.option("--seed", default=0, show_default=True, help="Another seed, other rows.")
    return fraction(seed(command))


@data.command("criteo", epilog="\b\nExample:\n  psrt data criteo train.tsv.gz --out data/criteo")
@click.argument("inputs", nargs=-1, required=True, metavar="IN.tsv[.gz]…")
@destination_options
@split_options
@click.option("--bucket-ints", is_flag=True, help="Add slots I1 … I13: integers as bucket ids.")
def criteo(
    *,
    inputs: tuple[str, ...],
    destination: Destination,
    test_fraction: float,
    seed: int,
    bucket_ints: bool,
) -> None:
    """Convert the public Criteo table (label, I1 … I13, C1 … C26, tab-separated)."""
    paths = expand(inputs)
    conversion = criteo_table.Conversion(test_fraction, seed, bucket_ints)
    with progress("converting", sum(text_bytes(path) for path in paths)) as advance:
        writer = criteo_table.convert(
            paths,
            destination,
            conversion,
            lambda rows, size_bytes: advance(size_bytes),
        )
    ids = "C1 … C26, I1 … I13" if bucket_ints else "C1 … C26"
    tell(writer, f"{_CRITEO_SLOTS}, {ids} (1 id each)", "clicks")


_LIBSVM_EPILOG = """\b
Examples:
  psrt data libsvm a9a --test a9a.t --out data/a9a
  psrt data libsvm rcv1.gz --test-fraction 0.2 --out data/rcv1
"""


@data.command("libsvm", epilog=_LIBSVM_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="IN[.gz]…")
@click.option(
    "--test", "tests", multiple=True, metavar="IN[.gz]", help="Test rows, in place of a share."
)
@destination_options
@split_options
def libsvm(
    *,
    inputs: tuple[str, ...],
    tests: tuple[str, ...],
    destination: Destination,
    test_fraction: float,
    seed: int,
) -> None:
    """Convert libsvm text with two classes (label index:value index:value …)."""
    paths, held_back = expand(inputs), expand(tests)
    split = Split(test_fraction, seed)
    with progress("converting", sum(map(text_bytes, paths + held_back))) as advance:
        writer = libsvm_text.convert(paths, destination, split, held_back, advance)
    tell(writer, in_words(libsvm_text.SLOTS), "positives")


_MNIST_EPILOG = """\b
Example:
  psrt data mnist train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz \\
    --test t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz --out data/mnist
"""


@data.command("mnist", epilog=_MNIST_EPILOG)
@click.argument("images", type=click.Path(path_type=Path))
@click.argument("labels", type=click.Path(path_type=Path))
@click.option(
    "--test",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="IMAGES LABELS",
    help="Test images and their labels, in place of a share.",
)
@destination_options
@split_options
def mnist(
    *,
    images: Path,
    labels: Path,
    test: tuple[Path, Path] | None,
    destination: Destination,
    test_fraction: float,
    seed: int,
) -> None:
    """Convert IDX files of images and labels, MNIST's among them; pixels become 0 … 1."""
    train = idx.read_images(images, labels)
    tests = idx.read_images(*test) if test else None
    total = len(train.labels) + (len(tests.labels) if tests else 0)
    with progress("converting", total) as advance:
        writer = idx.convert(train, destination, Split(test_fraction, seed), tests, advance)
    tell(writer, in_words(idx.slots(train)))


@data.command("synth-ctr", epilog="\b\nExample:\n  psrt data synth-ctr --out data/synth")
@destination_options
@click.option("--rows", default=200_000, show_default=True, help="Training rows.")
@click.option("--test-rows", default=50_000, show_default=True, help="Test rows.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same files.")
@click.option("--ids-per-slot", default=500, show_default=True, help="Ids of the largest slot.")
@click.option("--skew", default=2.0, show_default=True, help="Exponent of Zipf's law in a slot.")
def synth_ctr(
    *,
    destination: Destination,
    rows: int,
    test_rows: int,
    seed: int,
    ids_per_slot: int,
    skew: float,
) -> None:
    """Generate Criteo-shaped rows whose best possible AUC is known."""
    planted = synthetic.Planted(rows, test_rows, seed, ids_per_slot, skew)
    with progress("generating", rows + test_rows) as advance:
        writer, report = synthetic.generate(planted, destination, advance)
    tell(writer, f"{_CRITEO_SLOTS}, C1 … C26 (1 id each)", "clicks")
    click.echo(
        f"best possible test AUC {report.best_auc:.4f} (the planted model's own; "
        f"also in {destination.directory / synthetic.REPORT_NAME})"
    )


def in_words(slots: tuple[Slot, ...]) -> str:
    """`label (1 float), ids (any number of ids)`."""
    kinds = {"float": "float", "uint64": "id"}
    sizes = {slot.name: "any number of" if slot.size is None else slot.size for slot in slots}
    return ", ".join(
        f"{slot.name} ({sizes[slot.name]} {kinds[slot.dtype]}{'' if slot.size == 1 else 's'})"
        for slot in slots
    )


def tell(writer: ShardedWriter, slots: str, positives: str = "") -> None:
    """What was written, and the lines of a job file that read it."""
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
