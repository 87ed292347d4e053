"""Files of a job that a launch sends to hosts which do not share its directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from psrt.config.sections import JobConfig, LaunchConfig
from psrt.core.errors import ConfigError

LIMIT_BYTES = 64 << 20
"""Files are sent through the connections of the launch: data has other ways."""


def brought_files(config: LaunchConfig, job: JobConfig) -> dict[str, bytes]:
    """Return the content of each file by its path below the job's directory, in order of names.

    Raises `ConfigError` for a file outside that directory, a pattern without files, and more than
    `LIMIT_BYTES`.
    """
    directory = Path(config.job).parent
    wanted = {Path(config.job), *_matching(directory, config.bring)}
    wanted |= {directory / job.program} if job.program else set()
    names = sorted(_below(directory, path) for path in wanted)
    sizes = {name: (directory / name).stat().st_size for name in names}
    if (total := sum(sizes.values())) > LIMIT_BYTES:
        largest = max(names, key=sizes.__getitem__)
        raise ConfigError(
            f"--bring would send {total >> 20} MiB to every host, more than {LIMIT_BYTES >> 20}; "
            f"the largest file is {largest}.",
            hint="Bring programs only, and keep data where hosts read it: a shared path or a URL.",
        )
    return {name: (directory / name).read_bytes() for name in names}


def _matching(directory: Path, patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        found = [path for path in directory.glob(pattern) if path.is_file()]
        if not found:
            raise ConfigError(
                f"--bring: no file below {directory} matches {pattern!r}.",
                hint="Patterns are relative to the directory of the job file; ** = all below it.",
            )
        yield from found


def _below(directory: Path, path: Path) -> str:
    try:
        return str(path.resolve().relative_to(directory.resolve()))
    except ValueError as error:
        raise ConfigError(
            f"--bring: {path} is not below the job's directory {directory}, so it cannot be sent.",
            hint="Move it there, or leave --bring out and share the directories among the hosts.",
        ) from error
