"""`psrt export`: a saved model as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import click

_EPILOG = """\b
Examples:
  psrt export model/ model.onnx
  psrt export --fetch fc_0.out model/ model.onnx    another var of the program as output
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL_DIR", type=click.Path())
@click.argument("out", metavar="OUT.onnx", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--fetch",
    metavar="A,B,...",
    default="",
    help="Outputs of the file: vars of the program; empty = the prediction.",
)
def export(model: str, out: Path, fetch: str) -> None:
    """Write a saved model as an ONNX file.

    Inputs and outputs have the names of the program's vars; a prediction that is a logit remains a
    logit. Needs the package onnx (pip install '.[onnx]'). Of a distributed table it has the rows
    that were trained, and computes those of other ids. Ragged inputs and ops without an ONNX form
    are errors that name them.
    """
    from psrt.trainer.models import check_target, export_onnx, load_inference_model, writing

    check_target(str(out), model)
    names = [name.strip() for name in fetch.split(",") if name.strip()]
    predictor = load_inference_model(model, names or None)
    with writing(str(out)):
        export_onnx(predictor, out)
    click.echo(
        f"wrote {out}: {', '.join(predictor.feeds)} → {', '.join(predictor.fetches)}", err=True
    )
