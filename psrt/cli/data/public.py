"""`psrt data avazu`, `imikolov`, `movielens` and `synth-text`: rows made in Python."""

from __future__ import annotations

import math
from pathlib import Path

import click

from psrt.cli.data.options import destination_options, in_words, report_written, split_options
from psrt.cli.progress import progress
from psrt.core.errors import ConfigError
from psrt.data.convert import Destination, Split, synthetic_text
from psrt.data.convert import avazu as avazu_table
from psrt.data.convert import imikolov as text
from psrt.data.convert import movielens as ratings
from psrt.data.sources import expand, text_bytes


@click.command("avazu", epilog="\b\nExample:\n  psrt data avazu train.csv --out data/avazu")
@click.argument("inputs", nargs=-1, required=True, metavar="train.csv[.gz]…", type=click.Path())
@destination_options
@split_options
def avazu(*, inputs: tuple[str, ...], destination: Destination, split: Split) -> None:
    """Convert the table of Avazu's click contest (a header, then id, click, hour, C1 …).

    Each column but `id` is a slot of one id, hashed to 64 bits; of `hour` the hour of the day.
    """
    paths = expand(inputs)
    with progress("converting", sum(map(text_bytes, paths))) as advance:
        writer = avazu_table.convert(paths, destination, split, advance)
    report_written(writer, in_words(avazu_table.SLOTS), "clicks")


_IMIKOLOV_EPILOG = """\b
Examples:
  psrt data imikolov ptb.train.txt --test ptb.test.txt --out data/ptb
  psrt data imikolov text.txt.gz --window 5 --min-count 10 --out data/pairs
"""


@click.command("imikolov", epilog=_IMIKOLOV_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="TEXT[.gz]…", type=click.Path())
@click.option("--test", "tests", multiple=True, metavar="TEXT[.gz]", help="Test sentences.")
@click.option("--n", default=None, type=click.IntRange(2), help="Words of an n-gram.  [default: 5]")
@click.option("--window", default=0, metavar="WORDS", help="Skip-gram pairs up to WORDS apart.")
@click.option(
    "--min-count",
    default=50,
    show_default=True,
    help="A word that occurs no more often than this is <unk>.",
)
@destination_options
@split_options
def imikolov(
    *,
    inputs: tuple[str, ...],
    tests: tuple[str, ...],
    n: int | None,
    window: int,
    min_count: int,
    destination: Destination,
    split: Split,
) -> None:
    """Convert text with a sentence on each line to n-grams or, with --window, skip-gram pairs.

    The vocabulary goes to vocabulary.txt in --out: a word a line, the first is id 0.
    """
    if n and window:
        raise ConfigError("--n is of n-grams and --window of skip-gram pairs: give one of them.")
    windows = text.Windows(n or 5, window)
    paths, held_back = expand(inputs), expand(tests)
    with progress("converting", sum(map(text_bytes, paths + held_back))) as advance:
        writer, vocabulary = text.convert(
            paths, destination, windows, split, held_back, min_count, advance
        )
    report_written(writer, in_words(windows.slots))
    click.echo(f"{len(vocabulary):,} words, in {destination.directory / text.VOCABULARY_NAME}")


@click.command("movielens", epilog="\b\nExample:\n  psrt data movielens ml-1m --out data/ml-1m")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@destination_options
@split_options
def movielens(*, directory: Path, destination: Destination, split: Split) -> None:
    """Convert MovieLens 1M: ratings.dat, users.dat and movies.dat of DIRECTORY."""
    with progress("converting", text_bytes(directory / ratings.FILES[0])) as advance:
        writer = ratings.convert(directory, destination, split, advance)
    report_written(writer, in_words(ratings.SLOTS), f"rated {ratings.POSITIVE_RATING} or more")


_TEXT_EPILOG = """\b
Example:
  psrt data synth-text --out data/text
  psrt data imikolov data/text/train-*.txt --test 'data/text/test-*.txt' --out data/ngrams
"""


@click.command("synth-text", epilog=_TEXT_EPILOG)
@destination_options
@click.option("--sentences", default=50_000, show_default=True, help="Training sentences.")
@click.option("--test-sentences", default=5_000, show_default=True, help="Test sentences.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same text.")
@click.option("--words", default=2_000, show_default=True, help="Size of the vocabulary.")
@click.option("--length", default=20, show_default=True, help="Words of a sentence.")
@click.option(
    "--bond", default=0.5, show_default=True, help="Share of words that the word before decides."
)
@click.option("--skew", default=1.1, show_default=True, help="Exponent of Zipf's law.")
def synth_text(
    *,
    destination: Destination,
    sentences: int,
    test_sentences: int,
    seed: int,
    words: int,
    length: int,
    bond: float,
    skew: float,
) -> None:
    """Generate sentences whose best possible perplexity is known, for `psrt data imikolov`."""
    planted = synthetic_text.PlantedText(sentences, test_sentences, seed, words, length, bond, skew)
    with progress("generating", sentences + test_sentences) as advance:
        writer, perplexity = synthetic_text.generate(planted, destination, advance)
    for part, rows in writer.rows.items():
        click.echo(f"{part}: {rows:,} sentences of {length} words")
    if not math.isnan(perplexity):
        click.echo(f"best possible test perplexity {perplexity:.1f} (the planted model's own)")
