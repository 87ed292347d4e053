"""Gzip and zstd, decompressed as they are read; errors of damaged files.

Both read consecutive members or frames as one text. Their readers own the compressed file and close
it.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

from psrt.core.errors import DataError
from psrt.core.extras import found, required
from psrt.data.sources.places import DataFile

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# A frame without text, allowed before, between and behind others.
_SKIPPABLE = [bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60)]
# Four bytes of zstd can hold 128 KiB of text: this many hold at most 256 MiB.
_ZSTD_BYTES = 8 << 10
_GZIP_BYTES = 256 << 10
_GZIP_FORMAT = 16 + zlib.MAX_WBITS

Member: TypeAlias = Callable[[int], Any]
"""Begins to decompress one member; interface of `zlib.decompressobj`."""

_isal = found("isal.isal_zlib")
MEMBER: Member = zlib.decompressobj if _isal is None else _isal.decompressobj
"""ISA-L decompresses about three times as fast as zlib, with its interface."""
GZIP_ERRORS = (zlib.error,) if _isal is None else (zlib.error, _isal.error)


class OwningText(io.RawIOBase):
    """Bytes made of those of `file`, which it owns and closes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._stored = file

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        super().close()
        self._stored.close()


class GzipText(OwningText):
    """Consecutive members, with any zeros behind them; the checksum of each is verified.

    Decompresses without the GIL, in larger blocks than `gzip.GzipFile`. Raises `EOFError` for a
    truncated member, one of `GZIP_ERRORS` for a damaged one.
    """

    def __init__(self, file: IO[bytes], member: Member = MEMBER) -> None:
        super().__init__(file)
        self._input, self._begin = b"", member
        self._member: Any = None

    def readinto(self, into: Any) -> int:
        while self._member is not None or self._finds_member():
            self._input = self._input or self._stored.read(_GZIP_BYTES)
            text = self._member.decompress(self._input, len(into))
            if not text and not self._input and not self._member.eof:
                raise EOFError
            self._input = self._member.unused_data or self._member.unconsumed_tail
            self._member = None if self._member.eof else self._member
            if text:
                into[: len(text)] = text
                return len(text)
        return 0

    def _finds_member(self) -> bool:
        """Begin the next member at the start of the input; returns False at the end of the file."""
        while not (rest := self._input.lstrip(b"\0")):
            self._input = self._stored.read(_GZIP_BYTES)
            if not self._input:
                return False
        self._input, self._member = rest, self._begin(_GZIP_FORMAT)
        return True


class ZstdText(OwningText):
    """Consecutive frames, each checked for its end, which zstandard's own reader omits."""

    def __init__(self, file: IO[bytes], path: Path | str) -> None:
        super().__init__(file)
        self._zstandard = required("zstandard", "zstd", f"reading {path}")
        self._path = path
        self._frame: Any = None
        self._input, self._text = b"", memoryview(b"")

    def readinto(self, into: Any) -> int:
        while not self._text:
            self._input = self._input or self._stored.read(_ZSTD_BYTES)
            if not self._input:
                self._check_end()
                return 0
            self._text = memoryview(self._decompressed())
        count = min(len(into), len(self._text))
        into[:count] = self._text[:count]
        self._text = self._text[count:]
        return count

    def _decompressed(self) -> bytes:
        """Return the text of the next input; bytes behind a frame begin another."""
        self._frame = self._frame or self._zstandard.ZstdDecompressor().decompressobj()
        try:
            text: bytes = self._frame.decompress(self._input)
        except self._zstandard.ZstdError as error:
            raise damaged(self._path, "zstd", error) from error
        self._input = self._frame.unused_data if self._frame.eof else b""
        self._frame = None if self._frame.eof else self._frame
        return text

    def _check_end(self) -> None:
        if self._frame is not None:
            raise cut_off(self._path, "zstd")


def begins_zstd(start: bytes) -> bool:
    """Return whether a file is zstd, from its first four bytes or more."""
    return start[: len(ZSTD_MAGIC)] in (ZSTD_MAGIC, *_SKIPPABLE)


def cut_off(path: DataFile, kind: str) -> DataError:
    """Return the error for a truncated file."""
    return DataError(
        f"{path}: the {kind} file is cut off before its end. Reading stopped.",
        hint="Copy or generate the file again.",
    )


def damaged(path: DataFile, kind: str, error: Exception) -> DataError:
    """Return the error for a damaged file."""
    return DataError(
        f"{path}: the {kind} file is damaged ({error}). Reading stopped.",
        hint="Copy or generate the file again.",
    )
