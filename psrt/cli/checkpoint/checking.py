"""`psrt checkpoint verify`: every byte of cuts, compared with its checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from psrt.cli import results
from psrt.cli.checkpoint import contents
from psrt.cli.progress import progress
from psrt.core.errors import ConfigError, StorageError
from psrt.pserver.checkpoints import SavedCut, complete_cuts, find_cut
from psrt.storage.directory import Directory
from psrt.storage.locate import directory_at

_EPILOG = """\b
Examples:
  psrt checkpoint verify checkpoints            the newest cut
  psrt checkpoint verify checkpoints 12
  psrt checkpoint verify s3://bucket/job all
"""


@click.command("verify", epilog=_EPILOG)
@click.argument("location", metavar="DIR", type=click.Path())
@click.argument("which", metavar="[N|latest|all]", default="latest")
def verify(*, location: str, which: str) -> int:
    """Read every byte of cuts and compare all checksums.

    Prints a line per cut; files of cuts that it builds on count. A damaged or missing file is an
    error that names it; the other cuts are read nevertheless. The exit code is that of the first
    error, 0 if all cuts are whole.
    """
    directory = directory_at(location)
    cuts = list(_opened(directory, which))
    errors = [found for found in cuts if isinstance(found, StorageError)]
    whole = [found for found in cuts if isinstance(found, SavedCut)]
    sizes = {file["name"]: file["seal"]["bytes"] for cut in whole for file in cut.files}
    checked: set[str] = set()
    with progress("verifying", sum(sizes.values())) as advance:
        errors += [error for cut in whole if (error := _verify(cut, checked, advance)) is not None]
    for error in errors:
        click.echo(error.full_text(), err=True)
    return errors[0].spec.exit_code if errors else 0


def _opened(directory: Directory, which: str) -> Iterator[SavedCut | StorageError]:
    """The cuts to verify, an error for one whose JSON documents are damaged."""
    numbers = [str(number) for number in complete_cuts(directory)] if which == "all" else [which]
    if not numbers:
        raise ConfigError(f"{directory.location} has no complete cut.")
    for number in numbers:
        try:
            yield find_cut(directory, number)
        except StorageError as error:
            results.write(f"cut {number}: damaged")
            yield error


def _verify(
    cut: SavedCut, checked: set[str], advance: Callable[[int], None]
) -> StorageError | None:
    """Verify a cut; files that are in `checked` are not read again."""
    files = 0
    try:
        for name, size in cut.verify(checked):
            files += 1
            if name not in checked:
                advance(size)
            checked.add(name)
    except StorageError as error:
        results.write(f"cut {cut.number}: damaged")
        return error
    results.write(f"cut {cut.number}: whole, {files} files, {contents.size_bytes(cut):,} bytes")
    return None
