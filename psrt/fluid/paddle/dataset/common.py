"""The folder of data sets, `~/.cache/paddle/dataset`, and files in it."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from psrt.core.errors import DataError, ErrorCode

DATA_HOME = str(Path("~/.cache/paddle/dataset").expanduser())


def download(
    url: str, module_name: str, md5sum: str | None = None, save_name: str | None = None
) -> str:
    """Return the file of `url` in DATA_HOME/`module_name`; raises `DataError` if it is missing.

    psrt downloads nothing. `md5sum` is not checked.
    """
    name = save_name or url.rsplit("/", 1)[-1]
    found = Path(DATA_HOME) / module_name / name
    path = found.with_name(name.rsplit("%2F", 1)[-1])
    if found.is_file():  # newer versions of PaddlePaddle save it with the folder in its name
        return str(found)
    if not path.is_file():
        raise DataError(
            f"{path} is missing, and psrt downloads no data.",
            code=ErrorCode.DATA_MISSING,
            hint=f"Put {url} there, or set paddle.dataset.common.DATA_HOME.",
        )
    return str(path)


def lines_in(path: str, ending: str) -> Iterator[str]:
    """Yield the lines, without blanks at their ends, of the files of a tar archive named so.

    Names end with `ending`. Raises `DataError` for an archive without such a file.
    """
    with tarfile.open(path) as archive:
        found = [member for member in archive if member.isfile() and member.name.endswith(ending)]
        if not found:
            raise DataError(
                f"{path} has no file whose name ends with {ending}.",
                hint="Fetch the archive again, from where its module's URL has it.",
            )
        for member in found:
            content = archive.extractfile(member)
            assert content is not None, member.name
            for line in content:
                yield line.decode().strip()


__all__ = ["DATA_HOME", "download", "lines_in"]
