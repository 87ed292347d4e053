"""The folder of data sets, `~/.cache/paddle/dataset`, and files in it."""

from __future__ import annotations

from pathlib import Path

from psrt.core.errors import DataError, ErrorCode

DATA_HOME = str(Path("~/.cache/paddle/dataset").expanduser())


def download(
    url: str, module_name: str, md5sum: str | None = None, save_name: str | None = None
) -> str:
    """Return the file of `url` in DATA_HOME/`module_name`; raises `DataError` if it is missing.

    psrt downloads nothing. `md5sum` is not checked.
    """
    path = Path(DATA_HOME) / module_name / (save_name or url.rsplit("/", 1)[-1])
    if not path.is_file():
        raise DataError(
            f"{path} is missing, and psrt downloads no data.",
            code=ErrorCode.DATA_MISSING,
            hint=f"Put {url} there, or set paddle.dataset.common.DATA_HOME.",
        )
    return str(path)


__all__ = ["DATA_HOME", "download"]
