"""`paddle.dataset.cifar`: colour images, 3 · 32 · 32 numbers from 0 to 1, and a class."""

from __future__ import annotations

import codecs
import pickle
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F32
from psrt.fluid.paddle.dataset import common

CIFAR10_URL = "https://dataset.bj.bcebos.com/cifar/cifar-10-python.tar.gz"
CIFAR100_URL = "https://dataset.bj.bcebos.com/cifar/cifar-100-python.tar.gz"

Reader: TypeAlias = Callable[[], Iterator[tuple[F32, int]]]


def train10(cycle: bool = False) -> Reader:
    """Return a reader of the training images of 10 classes; `cycle` begins again at the end."""
    return _reader(CIFAR10_URL, "data_batch", cycle)


def test10(cycle: bool = False) -> Reader:  # noqa: PT028 (no test)
    """Return a reader of the test images of 10 classes."""
    return _reader(CIFAR10_URL, "test_batch", cycle)


def train100() -> Reader:
    """Return a reader of the training images of 100 classes."""
    return _reader(CIFAR100_URL, "train", False)


def test100() -> Reader:
    """Return a reader of the test images of 100 classes."""
    return _reader(CIFAR100_URL, "test", False)


def _reader(url: str, part: str, cycle: bool) -> Reader:
    def read() -> Iterator[tuple[F32, int]]:
        path = common.download(url, "cifar")
        while True:
            yield from _examples(path, part)
            if not cycle:
                return

    return read


def _examples(path: str, part: str) -> Iterator[tuple[F32, int]]:
    with tarfile.open(path) as archive:
        found = [m for m in archive if m.isfile() and m.name.rsplit("/", 1)[-1].startswith(part)]
        if not found:
            raise DataError(f"{path} has no file whose name begins with {part}.")
        for member in found:
            content = archive.extractfile(member)
            assert content is not None, member.name
            batch = _ArrayUnpickler(content, encoding="bytes").load()
            labels = batch.get(b"labels", batch.get(b"fine_labels"))
            for image, label in zip(batch[b"data"], labels, strict=True):
                yield (image / 255.0).astype(np.float32), int(label)


class _ArrayUnpickler(pickle.Unpickler):
    """Reader of pickled arrays, numbers and texts alone: other classes are refused."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        super().__init__(file, encoding=encoding)

    def find_class(self, module: str, name: str) -> Any:
        """Return what builds an array; raises `DataError` for anything else."""
        place = module.replace("numpy._core", "numpy.core")
        found = _ALLOWED.get(f"{place}.{name}")
        if found is None:
            raise DataError(f"A file of cifar holds {module}.{name}, which is no array.")
        return found


def _array(kind: Any, shape: Any, dtype: Any) -> Any:
    return np.ndarray((0,), np.uint8)  # its state follows


_ALLOWED: dict[str, Any] = {
    "numpy.core.multiarray._reconstruct": _array,
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    "_codecs.encode": codecs.encode,
}


__all__ = ["test10", "test100", "train10", "train100"]
