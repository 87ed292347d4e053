"""`paddle.dataset.mnist`: images of digits, 784 numbers from −1 to 1, and the digit."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F32
from psrt.fluid.paddle.dataset import common

URL = "https://dataset.bj.bcebos.com/mnist/"
_PIXELS = 784

Reader: TypeAlias = Callable[[], Iterator[tuple[F32, int]]]


def train() -> Reader:
    """Return a reader of the training images."""
    return lambda: _examples("train")


def test() -> Reader:
    """Return a reader of the test images."""
    return lambda: _examples("t10k")


def _examples(part: str) -> Iterator[tuple[F32, int]]:
    images = _bytes(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, _PIXELS)
    labels = _bytes(f"{part}-labels-idx1-ubyte.gz", 8)
    if len(images) != len(labels):
        raise DataError(f"mnist has {len(images)} images and {len(labels)} labels of {part}.")
    for image, label in zip(images, labels, strict=True):
        yield image.astype(np.float32) / 255.0 * 2.0 - 1.0, int(label)


def _bytes(name: str, header_bytes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    with gzip.open(common.download(URL + name, "mnist")) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header_bytes)


__all__ = ["test", "train"]
