"""`psrt checkpoint export`: the parameters of a cut in files that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from psrt.cli.checkpoint import array_files, contents
from psrt.cli.checkpoint.cut_model import write_model
from psrt.cli.checkpoint.export_target import check_new, new_directory, write_facts
from psrt.cli.progress import progress
from psrt.core.extras import required
from psrt.core.specs import to_plain
from psrt.pserver.checkpoints import find_cut
from psrt.pserver.saved import CutState, cut_state
from psrt.storage.locate import directory_at

FORMATS = ("model", "parquet", "numpy")

_EPILOG = """\b
Examples:
  psrt checkpoint export checkpoints --to numpy parameters            the newest cut
  psrt checkpoint export checkpoints 12 --to parquet parameters
  psrt checkpoint export checkpoints latest --to model --job job.toml model
"""


@click.command("export", epilog=_EPILOG)
@click.argument("places", nargs=-1, required=True, metavar="DIR [N|latest] OUT")
@click.option("--to", "format_name", type=click.Choice(FORMATS), required=True, help="Format.")
@click.option(
    "--job", default="", metavar="JOB.toml", help="Job file, whose program a model needs."
)
def export(*, places: tuple[str, ...], format_name: str, job: str) -> None:
    """Write the parameters of a cut to a new directory OUT.

    model: what --save writes, for psrt predict. A cut has no program, so the job file is needed.
    numpy: .npy files of values and optimizer state of dense parameters; of a sparse table one file
    per column: ids, weights, state, version, updates, and counters that the table stores.
    parquet: one file per sparse table with these columns, dense parameters as .npy; needs pyarrow.

    Reads the checksum of every byte that is exported. OUT must not exist; it appears when it is
    complete. Memory does not grow with the size of tables.
    """
    if len(places) not in (2, 3):
        raise click.UsageError("name the directory of cuts, perhaps a cut, and the new directory.")
    location, which, out = places[0], places[1] if len(places) == 3 else "latest", Path(places[-1])
    check_new(out)
    state = cut_state(find_cut(directory_at(location), which))
    if format_name == "parquet":
        required("pyarrow.parquet", "parquet", "exporting Parquet files")
    with progress("exporting", contents.size_bytes(state.cut)) as advance:
        if format_name == "model":
            manifest = write_model(state, job, out, advance)
            dense, rows = len(manifest.dense), sum(map(manifest.rows, manifest.sparse))
        else:
            dense, rows = _write_arrays(state, format_name, out, advance)
    click.echo(
        f"exported cut {state.cut.number} to {out}: {dense} dense parameters, {rows:,} rows",
        err=True,
    )


def _write_arrays(
    state: CutState, format_name: str, out: Path, advance: Callable[[int], None]
) -> tuple[int, int]:
    """Write all parameters; returns the numbers of dense parameters and of rows."""
    write = (
        array_files.write_parquet_table
        if format_name == "parquet"
        else array_files.write_numpy_table
    )
    parameters: list[dict[str, Any]] = []
    total = 0
    with new_directory(out) as root:
        for name, dense in state.dense.items():
            files = array_files.write_dense(root, name, dense, advance)
            parameters.append(_facts(dense.spec, files) | {"updates": dense.version})
        for name, table in state.sparse.items():
            files, rows = write(root, name, table, advance)
            parameters.append(_facts(table.spec, files) | {"rows": rows})
            total += rows
        names = ("number", "written", "job", "round", "step")
        facts = {name: state.cut.manifest.get(name) for name in names}
        write_facts(root, {"cut": facts, "parameters": parameters})
    return len(state.dense), total


def _facts(spec: Any, files: list[str]) -> dict[str, Any]:
    return {"files": files, "spec": to_plain(spec)}
