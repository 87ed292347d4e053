"""IDX files against hand-written bytes, and labelled images as MultiSlot lines."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import DataError
from psrt.data.convert.idx import Images, convert, read_idx, read_images, slots
from psrt.data.convert.sharded import Destination, Split
from psrt.data.reading.queue import QueueReader

PIXELS = bytes(range(0, 240, 10))  # 4 images of 2 x 3
IMAGES = b"\0\0\x08\x03" + struct.pack(">III", 4, 2, 3) + PIXELS
LABELS = b"\0\0\x08\x01" + struct.pack(">I", 4) + b"\7\0\1\x09"


def file(tmp_path: Path, data: bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def images(count: int) -> Images:
    random = np.random.default_rng(3)
    pixels = random.integers(0, 256, (count, 2, 2), dtype=np.uint8)
    return Images(pixels, (np.arange(count) % 10).astype(np.uint8))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_idx_file_is_read_in_the_shape_it_declares(tmp_path: Path, pack) -> None:
    found = read_idx(file(tmp_path, pack(IMAGES)))

    assert found.shape == (4, 2, 3)
    assert found.dtype == np.uint8
    assert found[1].tolist() == [[60, 70, 80], [90, 100, 110]]


def test_images_become_lines_of_pixels_and_a_label(tmp_path: Path) -> None:
    both = read_images(file(tmp_path, IMAGES, "i"), file(tmp_path, LABELS, "l"))

    writer = convert(both, Destination(tmp_path / "out", 1), Split(0))

    (path,) = writer.paths("train")
    first = path.read_text().splitlines()[0]
    assert first == "6 0 0.039216 0.078431 0.117647 0.156863 0.196078 1 7"
    with QueueReader([path], slots(both), 10) as reader:
        [batch] = reader
    pixels = np.frombuffer(PIXELS, np.uint8).reshape(4, 6)
    np.testing.assert_allclose(batch["pixel"], pixels / 255, atol=5e-7)
    assert batch["label"].tolist() == [[7], [0], [1], [9]]


def test_black_and_white_are_exact(tmp_path: Path) -> None:
    two = Images(np.array([[[0, 255]]], np.uint8), np.array([3], np.uint8))

    writer = convert(two, Destination(tmp_path, 1), Split(0))

    assert writer.paths("train")[0].read_text() == "2 0 1 1 3\n"


def test_the_test_share_depends_on_images_and_seed_only(tmp_path: Path) -> None:
    some = images(3000)
    backwards = Images(some.pixels[::-1], some.labels[::-1])

    def tests(given: Images, seed: int, name: str) -> list[str]:
        writer = convert(given, Destination(tmp_path / name, 1), Split(0.1, seed))
        assert writer.rows["train"] + writer.rows["test"] == 3000
        return writer.paths("test")[0].read_text().splitlines()

    first = tests(some, 0, "first")
    assert 220 < len(first) < 380
    assert set(first) == set(tests(backwards, 0, "backwards")) != set(tests(some, 1, "other"))


def test_files_of_their_own_become_the_test_images(tmp_path: Path) -> None:
    writer = convert(images(20), Destination(tmp_path, 1), Split(0.5), images(3))

    assert (writer.rows["train"], writer.rows["test"]) == (20, 3)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin with an IDX magic number"),
        (b"PK\3\4", "does not begin with an IDX magic number"),
        (b"\0\0\x0d\x01" + struct.pack(">If", 1, 1.0), "holds elements of IDX type 0x0d"),
        (IMAGES[:-1], r"declares shape \(4, 2, 3\), but holds 23 bytes"),
        (IMAGES + b"\0", r"declares shape \(4, 2, 3\), but holds 25 bytes"),
        (IMAGES[:9], "ends before the sizes of its 3 dimensions"),
        (gzip.compress(IMAGES, mtime=0)[:-9], "is a damaged gzip file"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    path = file(tmp_path, data)

    with pytest.raises(DataError, match=f"{path} {why}"):
        read_idx(path)


def test_labels_and_images_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    pixels, labels = file(tmp_path, IMAGES, "i"), file(tmp_path, LABELS, "l")

    with pytest.raises(DataError, match=r"has shape \(4,\), images have") as refused:
        read_images(labels, pixels)

    assert "in this order" in refused.value.hint


def test_a_label_is_needed_for_every_image(tmp_path: Path) -> None:
    fewer = b"\0\0\x08\x01" + struct.pack(">I", 3) + b"\7\0\1"

    with pytest.raises(DataError, match=r"has shape \(3,\), but there are 4 images"):
        read_images(file(tmp_path, IMAGES, "i"), file(tmp_path, fewer, "l"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent cannot be read: No such file"):
        read_idx(tmp_path / "absent")
