"""`psrt inspect`: tables, rows and parameters of a model, a cut or a running job."""

from __future__ import annotations

import json
from pathlib import Path

import click

from psrt.cli import results
from psrt.cli.options import access_options

_EPILOG = """\b
Examples:
  psrt inspect model/                                 a directory of --save
  psrt inspect checkpoints#12                         a cut
  psrt inspect host-a:6170                            a job that runs
  psrt inspect model/ --table emb --id 17 --text u894
  psrt inspect model/ --histogram norms.png
"""


@click.command(epilog=_EPILOG)
@click.argument("places", nargs=-1, required=True, metavar="DIR|HOST:PORT...")
@click.option("--table", default="", metavar="NAME", help="Only this table.")
@click.option("--id", "ids", type=int, multiple=True, metavar="N", help="Print the row of an id.")
@click.option(
    "--text", "texts", multiple=True, metavar="TEXT", help="Print the row of a hashed text."
)
@click.option("--salt", default=0, show_default=True, help="Salt of the column of --text.")
@click.option("--buckets", default=0, show_default=True, help="Buckets of the column of --text.")
@click.option(
    "--top",
    default=5,
    show_default=True,
    type=click.IntRange(min=0),
    help="Rows to print, those with the largest norm.",
)
@click.option(
    "--histogram",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the norms of rows into this PNG; needs matplotlib.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--timeout-s",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for a pserver, in seconds.",
)
@access_options
def inspect(
    *,
    places: tuple[str, ...],
    table: str,
    ids: tuple[int, ...],
    texts: tuple[str, ...],
    salt: int,
    buckets: int,
    top: int,
    histogram: Path | None,
    as_json: bool,
    timeout_s: float,
) -> None:
    """Show what a saved model, a cut or a running job holds.

    Prints each table with its rows and norms, each dense parameter, and the rows with the largest
    norms. Reads every row once, in bounded memory; pservers of a running job go on meanwhile, and
    their dense parameters are listed without values.
    """
    from psrt.cli.models import facts, report
    from psrt.cli.models.drawing import draw_norms
    from psrt.cli.models.sources import opened
    from psrt.data.hashing import hash_ids

    hashed = hash_ids(texts, salt, buckets).tolist()
    wanted = [*ids, *hashed]
    with opened(places, timeout_s) as source:
        chosen = [source.table(table)] if table or wanted else source.tables
        tables = [facts.table_facts(each, top, wanted) for each in chosen]
        dense = [] if table or wanted else [facts.dense_facts(each) for each in source.dense]
    if histogram is not None:
        draw_norms(histogram, tables)
    if as_json:
        results.write(json.dumps(facts.plain(source, dense, tables)))
    elif wanted:
        rows = tables[0].wanted
        results.write("\n".join(report.row_line(tables[0].name, i, rows.get(i)) for i in wanted))
    else:
        results.write("\n".join([source.label, *report.lines_of(dense, tables)]))
