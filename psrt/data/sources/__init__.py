"""Bytes and text of files, URLs and pipes: files in reading order.

places      Positions in data: parts of files, and the progress of a reader
remote      Files named by URL, through fsspec: `s3://…`, `gs://…`, `hdfs://…`, `http://…`
compressed  Gzip and zstd, decompressed as they are read; errors of damaged files
text_ahead  Text that a thread reads a few blocks ahead of its parser
raw_bytes   Bytes of a file, a URL or the standard input, as stored and decompressed
sources     Text of a file, a URL or the standard input, in blocks of lines
files       The files of a data set, from names, globs and URLs
sharding    Files, or parts of them, assigned to the trainers of a job
dealing     The unread rests of files, dealt among another number of trainers
pipe        Files through a shell command, whose output is parsed
"""

from psrt.data.sources import files
from psrt.data.sources.dealing import DealtFiles, Rest, deal
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
from psrt.data.sources.raw_bytes import STDIN, Stamp, open_raw
from psrt.data.sources.remote import unreadable, unwritable
from psrt.data.sources.sharding import in_epoch, may_be_cut, shard_files, shards_of, stored_bytes
from psrt.data.sources.sources import Files, TextSource, blocks

__all__ = ["AS_IT_IS", "BEGINNING", "STDIN", "Bookmark", "DataFile", "FilePart", "Files", "Piped"]
__all__ += ["Place", "Position", "Reading", "Stamp", "TextSource", "blocks", "expand", "files"]
__all__ += ["in_epoch", "once", "open_raw", "shard_files", "text_bytes", "unreadable"]
__all__ += ["DealtFiles", "Rest", "deal", "may_be_cut", "shards_of", "stored_bytes", "unwritable"]
