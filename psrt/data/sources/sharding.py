"""Files, or parts of them, assigned to the trainers of a job.

Every trainer computes the shards of all from one list of files. So they agree without messages, and
each raises an error if any trainer has none. With fewer files than trainers, plain text files are
cut at line ends; each line belongs to one trainer.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.core.urls import is_url
from psrt.data.sources.places import DataFile, FilePart
from psrt.data.sources.raw_bytes import open_text
from psrt.data.sources.remote import size_bytes, unreadable

File: TypeAlias = Path | str
_SCANNED_BYTES = 1 << 16


def shard_files(
    files: Sequence[File], trainer_id: int, trainers: int, rule: str = "modulo", cut: bool = True
) -> list[DataFile]:
    """Return the shard of one trainer, by a rule of `_RULES`; `cut`: the files are lines of text.

    Raises `ConfigError` for a wrong id, `DataError` if any trainer would have no data.
    """
    if not 0 <= trainer_id < trainers:
        raise ConfigError(f"trainer id {trainer_id} is not one of 0 … {trainers - 1}")
    return shards_of(files, trainers, rule, cut)[trainer_id]


def shards_of(
    files: Sequence[File], trainers: int, rule: str = "modulo", cut: bool = True
) -> list[list[DataFile]]:
    """Return the shards of all trainers; raises `DataError` if any trainer would have no data."""
    if cut and len(files) < trainers and all(may_be_cut(file) for file in files):
        return [[*share] for share in cut_at_lines([Path(file) for file in files], trainers)]
    _refuse_too_few(files, trainers)
    shares = _RULES[rule](files, trainers)
    for trainer, share in enumerate(shares):
        if not share:
            raise DataError(
                f"none of the {len(files)} data files falls to trainer {trainer} by "
                f'shard = "{rule}" of [data].',
                code=ErrorCode.DATA_MISSING,
                hint="By modulo, contiguous or size every trainer has some.",
            )
    return [[*share] for share in shares]


def modulo(files: Sequence[File], trainers: int) -> list[list[File]]:
    """Assign file i to trainer i mod `trainers`."""
    return [list(files[trainer::trainers]) for trainer in range(trainers)]


def suffix(files: Sequence[File], trainers: int) -> list[list[File]]:
    """Assign a file to the trainer of its number modulo `trainers`: `train.txt-00003` is 3.

    The number follows the last `-`, or else is the last one of the name.
    """
    shares: list[list[File]] = [[] for _ in range(trainers)]
    for file in files:
        shares[_number(file) % trainers].append(file)
    return shares


def contiguous(files: Sequence[File], trainers: int) -> list[list[File]]:
    """Assign runs of files; the first `len(files)` mod `trainers` trainers have one more."""
    size, larger = divmod(len(files), trainers)
    ends = [trainer * size + min(trainer, larger) for trainer in range(trainers + 1)]
    return [list(files[start:stop]) for start, stop in pairwise(ends)]


def by_size(files: Sequence[File], trainers: int) -> list[list[File]]:
    """Assign the largest file first, each to the trainer with the fewest bytes as stored."""
    sizes = [stored_bytes(file) for file in files]
    loads = [(0, 0, trainer) for trainer in range(trainers)]
    owners = [0] * len(files)
    for number in sorted(range(len(files)), key=lambda number: (-sizes[number], number)):
        size, count, owner = min(loads)
        loads[loads.index((size, count, owner))] = (size + sizes[number], count + 1, owner)
        owners[number] = owner
    return [
        [file for file, owner in zip(files, owners, strict=True) if owner == trainer]
        for trainer in range(trainers)
    ]


_RULES: dict[str, Callable[[Sequence[File], int], list[list[File]]]] = {
    "modulo": modulo,
    "suffix": suffix,
    "contiguous": contiguous,
    "size": by_size,
}


def in_epoch(files: Sequence[DataFile], seed: int, epoch: int) -> list[DataFile]:
    """Return one trainer's files in an order drawn from seed and epoch; unchanged if `seed` < 0."""
    order = list(files)
    if seed >= 0:
        random.Random(f"{seed} {epoch}").shuffle(order)
    return order


def cut_at_lines(files: Sequence[Path], trainers: int) -> list[list[FilePart]]:
    """Return the concatenated text of all files, cut into one part per trainer.

    Parts have near-equal size; a line that a cut falls into belongs to the part of its first byte.
    """
    sizes = [stored_bytes(file) for file in files]
    cuts = [trainer * sum(sizes) // trainers for trainer in range(trainers + 1)]
    shares: list[list[FilePart]] = [[] for _ in range(trainers)]
    begin = 0
    for file, size in zip(files, sizes, strict=True):
        inside = [min(max(cut - begin, 0), size) for cut in cuts]
        ends = line_starts(file, inside)
        for share, (start, stop) in zip(shares, pairwise(ends), strict=True):
            if start < stop:
                share.append(FilePart(file, start, stop))
        begin += size
    for trainer, share in enumerate(shares):
        if not share:
            names = ", ".join(str(file) for file in files)
            raise DataError(
                f"{names}: too few lines to share among {trainers} trainers, "
                f"trainer {trainer} would have none.",
                code=ErrorCode.DATA_MISSING,
                hint="Use fewer trainers.",
            )
    return shares


def line_starts(path: Path, offsets: Sequence[int]) -> list[int]:
    """Return for each offset the start of the first line at or behind it."""
    try:
        with open(path, "rb") as file:
            return [_line_start(file, offset) for offset in offsets]
    except OSError as error:
        raise unreadable(path, error) from error


def _line_start(file: io.BufferedReader, offset: int) -> int:
    if offset == 0:
        return 0
    at = offset - 1
    file.seek(at)
    while text := file.read(_SCANNED_BYTES):
        if (end := text.find(b"\n")) >= 0:
            return at + end + 1
        at += len(text)
    return at


def may_be_cut(file: File) -> bool:
    """Return whether the text is the file's bytes: local and not compressed."""
    if is_url(file):
        return False
    with open_text(file) as text:
        return isinstance(text, io.FileIO)


def _refuse_too_few(files: Sequence[File], trainers: int) -> None:
    if len(files) < trainers:
        raise DataError(
            f"{len(files)} data files cannot be shared by {trainers} trainers: "
            f"trainers {len(files)} … {trainers - 1} would have none.",
            code=ErrorCode.DATA_MISSING,
            hint="Plain text files of this host are cut to fit; for others, split the data into "
            "more files (psrt data … --files N) or use fewer trainers.",
        )


def _number(file: File) -> int:
    name = str(file).rsplit("/", 1)[-1]
    match = re.search(r"-(\d+)[^-]*$", name) or re.search(r"(\d+)\D*$", name)
    if match is None:
        raise DataError(
            f'data file {file} has no number in its name, which shard = "suffix" of [data] needs.',
            code=ErrorCode.DATA_MISSING,
            hint="Name files as psrt data split does, name-00000 …, or shard by modulo.",
        )
    return int(match[1])


def stored_bytes(file: File) -> int:
    """Return the size of a file as stored; raises `DataError` if it cannot be read."""
    try:
        return size_bytes(str(file)) if is_url(file) else Path(file).stat().st_size
    except OSError as error:
        raise unreadable(file, error) from error
