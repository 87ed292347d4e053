"""`psrt export`: a saved model as an ONNX file, or the rows of a table for other programs."""

from __future__ import annotations

from pathlib import Path

import click

_EPILOG = """\b
Examples:
  psrt export model/ model.onnx
  psrt export --fetch fc_0.out model/ model.onnx    another var of the program as output
  psrt export --table emb model/ emb.parquet        rows by id; also .npz
  psrt export --words vocabulary.txt model/ emb.vec    text as word2vec writes it
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL_DIR", type=click.Path())
@click.argument("out", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--fetch",
    metavar="A,B,...",
    default="",
    help="Outputs of an ONNX file: vars of the program; empty = the prediction.",
)
@click.option(
    "--table", metavar="NAME", default="", help="Table to write; needed if the model has several."
)
@click.option(
    "--words",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Words of rows: that of line n, from 0, belongs to id n. Other rows are left out.",
)
def export(model: str, out: Path, fetch: str, table: str, words: Path | None) -> None:
    """Write a saved model, or a table of it, for other programs.

    OUT.onnx is the whole model. Inputs and outputs have the names of the program's vars; a
    prediction that is a logit remains a logit. Needs the package onnx (pip install '.[onnx]'). Of a
    distributed table it has the rows that were trained, and computes those of other ids. Ragged
    inputs and ops without an ONNX form are errors that name them.

    OUT.parquet, .npz, and .txt or .vec (the text of word2vec) have the trained rows of one table.
    """
    if out.suffix == ".onnx":
        _write_onnx(model, out, fetch)
    else:
        _write_table(model, out, table, words)


def _write_onnx(model: str, out: Path, fetch: str) -> None:
    from psrt.trainer.models import (
        check_target,
        export_onnx,
        inputs_of,
        load_inference_model,
        writing,
    )

    check_target(str(out), model)
    names = [name.strip() for name in fetch.split(",") if name.strip()]
    predictor = load_inference_model(model, names or None)
    with writing(str(out)):
        export_onnx(predictor, out)
    click.echo(
        f"wrote {out}: {', '.join(inputs_of(predictor))} → {', '.join(predictor.fetches)}", err=True
    )


def _write_table(model: str, out: Path, name: str, words: Path | None) -> None:
    from psrt.cli.models.embeddings import read_words, write_rows
    from psrt.cli.models.sources import opened
    from psrt.trainer.models import check_target, writing

    check_target(str(out), model)
    unfinished = out.with_name(f"{out.name}.tmp")
    known = read_words(words) if words is not None else None
    with writing(str(out)), opened([model], timeout_s=0.0) as source:
        table = source.table(name)
        try:
            count = write_rows(table, known, unfinished, out)
            unfinished.replace(out)
        finally:
            unfinished.unlink(missing_ok=True)
    click.echo(f"wrote {out}: {count:,} rows of {table.name}", err=True)
