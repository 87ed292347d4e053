"""IDX files (MNIST and its relatives), and labelled images as MultiSlot files.

An IDX file is a magic number 0, 0, type, dimensions; one big-endian 32-bit size per dimension; the
elements in C order (Y. LeCun, "The MNIST database"). Read here: bytes, plain or gzip, whole into
memory. Out, per image:

    pixel          float × height · width   0 … 1, row by row
    label          uint64 × 1               0 … 9 for digits

Test images are files of their own, or depend on the image and the seed only. A file that is not of
this format raises an error naming it.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F64, U8
from psrt.data.convert.sharded import Destination, Drawn, Lines, ShardedWriter, Split, write_split
from psrt.data.slots import Slot
from psrt.data.sources import unreadable

_UNSIGNED_BYTE = 8
_IMAGES_PER_CALL = 1024
_TOKENS = [f" {value / 255:.6f}".rstrip("0").rstrip(".") for value in range(256)]


@dataclass(frozen=True)
class Images:
    """`pixels` (n, height, width) and `labels` (n,)."""

    pixels: U8
    labels: U8

    def part(self, start: int, stop: int) -> Images:
        """Return images `start` to `stop`."""
        return Images(self.pixels[start:stop], self.labels[start:stop])


def slots(images: Images) -> tuple[Slot, ...]:
    """Return the slots of a converted file."""
    return Slot("pixel", "float", images.pixels[0].size), Slot("label", "uint64", 1)


def read_idx(path: Path) -> U8:
    """Return the array of an IDX file of bytes, in its declared shape; raises `DataError`."""
    data = _bytes_of(path)
    if len(data) < 4 or data[:2] != b"\0\0":
        raise _refused(path, "does not begin with an IDX magic number")
    kind, dimensions = data[2], data[3]
    if kind != _UNSIGNED_BYTE:
        raise _refused(path, f"holds elements of IDX type {kind:#04x}, not bytes (0x08)")
    start = 4 + 4 * dimensions
    if len(data) < start:
        raise _refused(path, f"ends before the sizes of its {dimensions} dimensions")
    shape = tuple(np.frombuffer(data[4:start], ">u4").tolist())
    if len(data) - start != math.prod(shape):
        raise _refused(path, f"declares shape {shape}, but holds {len(data) - start:,} bytes")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def read_images(images: Path, labels: Path) -> Images:
    """Read a file of images and the file of their labels; raises `DataError`."""
    pixels, digits = read_idx(images), read_idx(labels)
    if pixels.ndim != 3 or not pixels.size:
        raise _refused(images, f"has shape {pixels.shape}, images have (number, height, width)")
    if digits.shape != pixels.shape[:1]:
        raise _refused(labels, f"has shape {digits.shape}, but there are {len(pixels):,} images")
    return Images(pixels, digits)


def convert(
    images: Images,
    destination: Destination,
    split: Split,
    tests: Images | None = None,
    on_images: Callable[[int], None] = lambda images: None,
) -> ShardedWriter:
    """Write `images` and set a share of them aside, or, if given, `tests` instead."""
    held_back = None if tests is None else _drawn(tests, split.seed, on_images)
    return write_split(destination, split, _drawn(images, split.seed, on_images), held_back)


def _drawn(images: Images, seed: int, on_images: Callable[[int], None]) -> Iterator[Drawn]:
    for start in range(0, len(images.labels), _IMAGES_PER_CALL):
        part = images.part(start, start + _IMAGES_PER_CALL)
        yield lines_of(part), draws_of(part, seed)
        on_images(len(part.labels))


def lines_of(images: Images) -> Lines:
    """Return one MultiSlot line per image."""
    flat = images.pixels.reshape(len(images.labels), -1)
    pixels = ("".join([_TOKENS[value] for value in row]) for row in flat.tolist())
    lines = [
        f"{flat.shape[1]}{tokens} 1 {label}\n".encode()
        for tokens, label in zip(pixels, images.labels.tolist(), strict=True)
    ]
    return Lines(images.labels, lines)


def draws_of(images: Images, seed: int) -> F64:
    """Return a number in [0, 1) per image, a function of its pixels and `seed`."""
    sums = [zlib.crc32(image.tobytes(), seed) for image in images.pixels]
    return np.array(sums, np.float64) / (1 << 32)


def _bytes_of(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _refused(path, f"is a damaged gzip file ({error})") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _refused(path: Path, why: str) -> DataError:
    return DataError(
        f"{path} {why}. Nothing was written.",
        hint="MNIST has train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz, in this order.",
    )
