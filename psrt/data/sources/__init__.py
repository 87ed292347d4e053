"""sources: files in reading order.

places      Places in data: parts of files, and how far a reader has come
remote      Files named by URL, through fsspec: `s3://…`, `gs://…`, `hdfs://…`, `http://…`,
            `memory://…`
compressed  Gzip and zstd, decompressed as they are read, and what is said of files cut off or
            damaged
text_ahead  A text that a thread of its own reads, a few blocks ahead of whoever parses it
raw_bytes   The bytes of a file, a URL or the standard input: as they are stored, and
            decompressed
sources     Where text comes from: a file, a URL or the standard input, decompressed, in blocks
            of lines
files       Which files a data set has
sharing     Files, or parts of them, dealt to the trainers of a job
pipe        Files through a program: each on the standard input of a shell command, whose
            output is parsed
"""

from __future__ import annotations

from psrt.data.sources import files
from psrt.data.sources.files import expand, once, text_bytes
from psrt.data.sources.pipe import AS_IT_IS, Piped
from psrt.data.sources.places import (
    BEGINNING,
    Bookmark,
    DataFile,
    FilePart,
    Place,
    Position,
    Reading,
)
from psrt.data.sources.raw_bytes import STDIN, Stamp, open_stored
from psrt.data.sources.remote import is_url, unreadable
from psrt.data.sources.sharing import in_epoch, shared
from psrt.data.sources.sources import Files, TextSource, blocks

__all__ = [
    "AS_IT_IS",
    "BEGINNING",
    "STDIN",
    "Bookmark",
    "DataFile",
    "FilePart",
    "Files",
    "Piped",
    "Place",
    "Position",
    "Reading",
    "Stamp",
    "TextSource",
    "blocks",
    "expand",
    "files",
    "in_epoch",
    "is_url",
    "once",
    "open_stored",
    "shared",
    "text_bytes",
    "unreadable",
]
