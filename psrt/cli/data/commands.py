"""`psrt data`: the group."""

from __future__ import annotations

import click

from psrt.cli.lazy import LazyGroup, Subcommand

_EXAMPLES = """\b
Examples:
  psrt data synth-ctr --out data/synth --rows 200000 --files 2
  psrt data criteo train.tsv.gz --out data/criteo --files 2
  psrt data libsvm a9a --test a9a.t --out data/a9a
  psrt data convert part-*.parquet --job ctr.toml --out data/ctr
  psrt data mnist train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out data/mnist
  psrt data split train.txt.gz -n 3 --out parts
  psrt data check data/train-*.txt --job ctr_dnn.toml
  psrt data stat data/train-*.txt --job ctr_dnn.toml
"""

SUBCOMMANDS = {
    "convert": Subcommand(
        "psrt.cli.data.converting",
        "convert",
        "Convert files of any format that jobs read to MultiSlot text of the same slots.",
    ),
    "criteo": Subcommand(
        "psrt.cli.data.converting",
        "criteo",
        "Convert the public Criteo table (label, I1 … I13, C1 … C26, tab-separated).",
    ),
    "libsvm": Subcommand(
        "psrt.cli.data.converting",
        "libsvm",
        "Convert libsvm text with two classes (label index:value index:value …).",
    ),
    "mnist": Subcommand(
        "psrt.cli.data.converting",
        "mnist",
        "Convert IDX files of images and labels, MNIST's among them; pixels become 0 … 1.",
    ),
    "synth-ctr": Subcommand(
        "psrt.cli.data.converting",
        "synth_ctr",
        "Generate Criteo-shaped rows whose best possible AUC is known.",
    ),
    "avazu": Subcommand(
        "psrt.cli.data.public",
        "avazu",
        "Convert the table of Avazu's click contest (a header, then id, click, hour, C1 …).",
    ),
    "imikolov": Subcommand(
        "psrt.cli.data.public",
        "imikolov",
        "Convert text with a sentence on each line to n-grams or, with --window, skip-gram pairs.",
    ),
    "movielens": Subcommand(
        "psrt.cli.data.public",
        "movielens",
        "Convert MovieLens 1M: ratings.dat, users.dat and movies.dat of DIRECTORY.",
    ),
    "synth-text": Subcommand(
        "psrt.cli.data.public",
        "synth_text",
        "Generate sentences whose best possible perplexity is known, for `psrt data imikolov`.",
    ),
    "split": Subcommand(
        "psrt.cli.data.check",
        "split",
        "Cut a text file into parts of consecutive lines, name-00000 … in --out.",
    ),
    "check": Subcommand(
        "psrt.cli.data.check",
        "check",
        "Read files to their ends and print all errors that a job would stop at.",
    ),
    "stat": Subcommand(
        "psrt.cli.data.stat",
        "stat",
        "Print statistics of files: examples, values, ids and their skew, and the label's rate.",
    ),
}


@click.group(cls=LazyGroup, subcommands=SUBCOMMANDS, epilog=_EXAMPLES)
def data() -> None:
    """Make training files and inspect them.

    Converters write MultiSlot text, train-00000.txt … and test-00000.txt …, and print the lines of
    a job file that read it. split cuts a file for several trainers; stat and check print statistics
    and errors of files.
    """
