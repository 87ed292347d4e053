"""`psrt data convert`, `criteo`, `libsvm`, `mnist` and `synth-ctr`: MultiSlot files of others."""

from __future__ import annotations

from pathlib import Path

import click

from psrt.cli.data.options import (
    destination_options,
    format_options,
    in_words,
    report_written,
    split_options,
)
from psrt.cli.progress import progress
from psrt.data.convert import Destination, Split, any_format, idx, synthetic
from psrt.data.convert import criteo as criteo_table
from psrt.data.convert import libsvm as libsvm_text
from psrt.data.formats import Format
from psrt.data.sources import expand, text_bytes

_TEST_HELP = "Test rows, in place of a share."
_CRITEO_SLOTS = "click (1 float), dense_input (13 floats)"

_CONVERT_EPILOG = """\b
Examples:
  psrt data convert a9a --test a9a.t --format libsvm --out data/a9a
  psrt data convert part-*.parquet --job ctr.toml --out data/ctr
  psrt data convert t.csv --format csv --slots y:float:1,x:float:1 --out data/t
"""


@click.command("convert", epilog=_CONVERT_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="FILES…", type=click.Path())
@click.option("--test", "tests", multiple=True, metavar="FILE", help=_TEST_HELP)
@format_options
@destination_options
@split_options
def convert(
    *,
    inputs: tuple[str, ...],
    tests: tuple[str, ...],
    format: Format,
    destination: Destination,
    split: Split,
) -> None:
    """Convert files of any format that jobs read to MultiSlot text of the same slots."""
    paths, held_back = expand(inputs), expand(tests)
    with progress("converting", sum(map(text_bytes, paths + held_back))) as advance:
        writer = any_format.convert(paths, format, destination, split, held_back, advance)
    report_written(writer, in_words(format.slots))


@click.command("criteo", epilog="\b\nExample:\n  psrt data criteo train.tsv.gz --out data/criteo")
@click.argument("inputs", nargs=-1, required=True, metavar="IN.tsv[.gz]…", type=click.Path())
@destination_options
@split_options
@click.option("--bucket-ints", is_flag=True, help="Add slots I1 … I13: integers as bucket ids.")
def criteo(
    *, inputs: tuple[str, ...], destination: Destination, split: Split, bucket_ints: bool
) -> None:
    """Convert the public Criteo table (label, I1 … I13, C1 … C26, tab-separated)."""
    paths = expand(inputs)
    with progress("converting", sum(map(text_bytes, paths))) as advance:
        writer = criteo_table.convert(paths, destination, split, bucket_ints, advance)
    ids = "C1 … C26, I1 … I13" if bucket_ints else "C1 … C26"
    report_written(writer, f"{_CRITEO_SLOTS}, {ids} (1 id each)", "clicks")


_LIBSVM_EPILOG = """\b
Examples:
  psrt data libsvm a9a --test a9a.t --out data/a9a
  psrt data libsvm rcv1.gz --test-fraction 0.2 --out data/rcv1
"""


@click.command("libsvm", epilog=_LIBSVM_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="IN[.gz]…", type=click.Path())
@click.option("--test", "tests", multiple=True, metavar="IN[.gz]", help=_TEST_HELP)
@destination_options
@split_options
def libsvm(
    *, inputs: tuple[str, ...], tests: tuple[str, ...], destination: Destination, split: Split
) -> None:
    """Convert libsvm text with two classes (label index:value index:value …)."""
    paths, held_back = expand(inputs), expand(tests)
    with progress("converting", sum(map(text_bytes, paths + held_back))) as advance:
        writer = libsvm_text.convert(paths, destination, split, held_back, advance)
    report_written(writer, in_words(libsvm_text.SLOTS), "positives")


_MNIST_EPILOG = """\b
Example:
  psrt data mnist train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz \\
    --test t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz --out data/mnist
"""


@click.command("mnist", epilog=_MNIST_EPILOG)
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
    split: Split,
) -> None:
    """Convert IDX files of images and labels, MNIST's among them; pixels become 0 … 1."""
    train = idx.read_images(images, labels)
    tests = idx.read_images(*test) if test else None
    total = len(train.labels) + (len(tests.labels) if tests else 0)
    with progress("converting", total) as advance:
        writer = idx.convert(train, destination, split, tests, advance)
    report_written(writer, in_words(idx.slots(train)))


@click.command("synth-ctr", epilog="\b\nExample:\n  psrt data synth-ctr --out data/synth")
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
    report_written(writer, f"{_CRITEO_SLOTS}, C1 … C26 (1 id each)", "clicks")
    click.echo(
        f"best possible test AUC {report.best_auc:.4f} (the planted model's own; "
        f"also in {destination.directory / synthetic.REPORT_NAME})"
    )
