"""`psrt predict`: predictions of a saved model for data files, a line per example."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from psrt.cli.options import options_of
from psrt.cli.progress import progress
from psrt.config.load import load
from psrt.config.sections import PredictConfig

_EPILOG = """\b
Examples:
  psrt predict model/ data/test-*                     a probability per line
  psrt predict model/ --out scores.txt data/test-*.gz
  psrt predict model/ --format jsonl --fetch fc_0.out,sigmoid_0.out data/test-*
  zcat new.gz | psrt predict model/ --slots dense_input,C1,C2 -
  psrt predict model/ --job job.toml --slots x,item new.csv
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL_DIR", type=click.Path())
@click.argument("files", nargs=-1, required=True, metavar="FILES...", type=click.Path())
@options_of(PredictConfig)
def predict(model: str, files: tuple[str, ...], **flags: Any) -> None:
    """Apply a saved model to data files, a line per example.

    MODEL_DIR is a directory written by `--save` of psrt trainer and psrt launch, or by
    save_inference_model. FILES have the format of the training files, plain or compressed, or
    that of [data] in --job; labels are skipped. Use --slots for files without labels, or with
    slots in another order. `-` is the standard input, for --out the standard output.
    """
    settings = load(PredictConfig, flags=flags).config
    if settings.out == "-":  # as for psrt graph
        settings = dataclasses.replace(settings, out="")
    from psrt.trainer.models import predict as prediction

    paths = prediction.data_files(files)
    with _progress(settings, paths) as advance:
        count, measures = prediction.predict(settings, model, paths, advance)
    if settings.out:
        click.echo(f"wrote {settings.out}: {count:,} examples", err=True)
    if measures:
        click.echo(f"measured  {count:,} examples  {measures}", err=True)


def _progress(
    settings: PredictConfig, paths: list[Path | str]
) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar, unless predictions go to the terminal or the size of the input is unknown."""
    sized = [path for path in paths if isinstance(path, Path)]
    if not settings.out or len(sized) < len(paths):
        return nullcontext(lambda size_bytes: None)
    from psrt.data.sources import text_bytes

    return progress("predicting", sum(text_bytes(path) for path in sized))
