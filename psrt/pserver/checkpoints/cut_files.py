"""Names and contents of the files of a cut, in a directory of checkpoints.

    cut-00000012/part-0/dense.arrays      blocks of dense parameters of the first pserver
    cut-00000012/part-0/table-3.arrays    rows of its fourth sparse table
    cut-00000012/part-0.json              its tables, files and seals
    cut-00000012/manifest.json            all parts, positions of trainers; makes the cut complete
    cut-00000012/torch…                   what psrt.torch has put beside it, and nobody else reads

docs/reference/checkpoint-format.md describes them. A cut without a manifest does not count.
"""

from __future__ import annotations

import re

from psrt.storage.checksums import checksum

FORMAT_PART, FORMAT_MANIFEST, VERSION = "psrt cut part", "psrt cut", 1

_MANIFEST = re.compile(r"cut-(\d{8})/manifest\.json")
_BESIDE = re.compile(r"cut-\d{8}/torch[-.]")
_ANY = re.compile(r"cut-(\d{8})/")


def cut_prefix(number: int) -> str:
    return f"cut-{number:08d}/"


def manifest_name(number: int) -> str:
    return f"{cut_prefix(number)}manifest.json"


def part_name(number: int, index: int, kind: str = "part") -> str:
    """The name of a part's record; `kind` is `full` for one that compaction has written."""
    return f"{cut_prefix(number)}{kind}-{index}.json"


def arrays_prefix(number: int, index: int, kind: str = "part") -> str:
    return f"{cut_prefix(number)}{kind}-{index}/"


def arrays_name(number: int, index: int, stem: str, kind: str = "part") -> str:
    return f"{arrays_prefix(number, index, kind)}{stem}.arrays"


def complete_number(name: str) -> int | None:
    """The number of the cut whose manifest a file is, None for other files."""
    found = _MANIFEST.fullmatch(name)
    return int(found[1]) if found else None


def is_beside(name: str) -> bool:
    """True for a file of trainers, which goes only with its cut."""
    return _BESIDE.match(name) is not None


def number_of(name: str) -> int | None:
    """The number of the cut that a file belongs to."""
    found = _ANY.match(name)
    return int(found[1]) if found else None


def digest_of(data: bytes) -> str:
    """The checksum of a small file as a manifest has it."""
    return f"{checksum(data):016x}"
