"""Rows with weights stored in 16 bits: read, begun, and updated on float32 images of them.

Update rules take float32 rows only. So some hundred rows at a time are copied into images, a small
table of these rows with float32 weights that stays in the cache, are updated there and stored back:
weights rounded to nearest, ties to even; state as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64
from psrt.kernels.jit import device, kernel, warm_up
from psrt.kernels.optimizers import VERSION_WORD, RowTable
from psrt.kernels.precision import bf16_of, f16_of, f32_of_bf16, f32_of_f16
from psrt.kernels.tables.initialize import initial_row
from psrt.kernels.tables.row_layout import BFLOAT16, ID_WORD, RowLayout
from psrt.kernels.tables.row_lookup import prefetch_found
from psrt.kernels.tables.row_store import Move, MoveAll, RowStore, Start

_IMAGE_BYTES = 128 << 10
_IMAGE_ROWS = 1024


@device
def load(halves: Any, is_bfloat: bool, out: F32) -> None:
    """`out` (d,) = `halves` (d,)."""
    if is_bfloat:
        for column in range(len(out)):
            out[column] = f32_of_bf16(halves[column])
    else:
        for column in range(len(out)):
            out[column] = f32_of_f16(halves[column])


@device
def store(weights: F32, is_bfloat: bool, halves: Any) -> None:
    """`halves` (d,) = `weights` (d,), rounded."""
    if is_bfloat:
        for column in range(len(weights)):
            halves[column] = bf16_of(weights[column])
    else:
        for column in range(len(weights)):
            halves[column] = f16_of(weights[column])


@kernel(
    "const f4[:, ::1], i8, b1, const i8[::1], const i4[::1], const i4[::1], i8, f4, f4, i8, "
    "u2[::1], f4[:, ::1] -> void",
    group="half",
)
def read_half_rows(
    slab: F32,
    at: int,
    is_bfloat: bool,
    ids: I64,
    order: I32,
    found: I32,
    kind: int,
    a: float,
    b: float,
    seed: int,
    scratch: Any,
    out: F32,
) -> None:
    """Reads like `row_access.read_rows`; an absent row reads as it would be stored."""
    words = slab.view(np.uint16)
    for k in range(len(order)):
        prefetch_found(slab, found, at + out.shape[1] // 2 + 1, k)
        target = out[order[k]]
        if found[k] < 0:
            initial_row(kind, a, b, seed, ids[order[k]], target)
            store(target, is_bfloat, scratch)
            load(scratch, is_bfloat, target)
        else:
            load(words[found[k], 2 * at :], is_bfloat, target)


@kernel("f4[:, ::1], i8, b1, i8, i8, i8, f4, f4, i8, f4[::1] -> void", group="half")
def begin_half_rows_(
    slab: F32,
    at: int,
    is_bfloat: bool,
    first: int,
    end: int,
    kind: int,
    a: float,
    b: float,
    seed: int,
    scratch: F32,
) -> None:
    """Initial weights of rows `first` to `end`, which have their ids."""
    words, keys = slab.view(np.uint16), slab.view(np.int64)
    for slot in range(first, end):
        initial_row(kind, a, b, seed, keys[slot, ID_WORD // 2], scratch)
        store(scratch, is_bfloat, words[slot, 2 * at :])


@kernel("f4[:, ::1], i8, i8, b1, const i4[::1], f4[:, ::1], i8, i4[::1] -> i8", group="half")
def take_images_(
    slab: F32, at: int, state_at: int, is_bfloat: bool, found: I32, images: F32, width: int, of: I32
) -> int:
    """Copy the rows at slots `found` (n,) into `images`; row `of[k]` there is for `found[k]`.

    A slot that appears twice gets one image: until `store_images_` the version of a copied row is
    −1 − the number of its image. Returns the number of images.
    """
    words, headers, count = slab.view(np.uint16), slab.view(np.int32), 0
    for k in range(len(found)):
        prefetch_found(slab, found, slab.shape[1], k)
        slot, version = found[k], headers[found[k], VERSION_WORD]
        of[k] = -1 - version if version < 0 else count
        if version < 0:
            continue
        image = images[count]
        for word in range(at):
            image[word] = slab[slot, word]
        load(words[slot, 2 * at :], is_bfloat, image[at : at + width])
        for word in range(slab.shape[1] - state_at):
            image[at + width + word] = slab[slot, state_at + word]
        headers[slot, VERSION_WORD] = -1 - count
        count += 1
    return count


@kernel(
    "f4[:, ::1], i8, i8, b1, const i4[::1], const f4[:, ::1], i8, const i4[::1] -> void",
    group="half",
)
def store_images_(
    slab: F32, at: int, state_at: int, is_bfloat: bool, found: I32, images: F32, width: int, of: I32
) -> None:
    """Copy rows back from the images that `take_images_` has made."""
    words = slab.view(np.uint16)
    for k in range(len(found)):
        image, slot = images[of[k]], found[k]
        for word in range(at):
            slab[slot, word] = image[word]
        store(image[at : at + width], is_bfloat, words[slot, 2 * at :])
        for word in range(slab.shape[1] - state_at):
            slab[slot, state_at + word] = image[at + width + word]


class HalfRowStore(RowStore):
    """A `RowStore` of rows with half weights; its methods take and return float32."""

    def __init__(
        self, layout: RowLayout, start: Start, first_state: F32, absent: Start | None = None
    ) -> None:
        warm_up(["half"])
        super().__init__(layout, start, first_state, absent)
        self._is_bfloat = layout.storage == BFLOAT16
        self._image = layout.as_float32()
        self._images_at_once = max(1, min(_IMAGE_ROWS, _IMAGE_BYTES // self._image.row_bytes))

    def read(self, ids: I64, order: I32, found: I32, out: F32) -> None:
        self.find(ids, order, found)
        self._load(ids, order, found, out)

    def move(self, move: Move, found: I32, order: I32) -> None:
        for start in range(0, len(found), self._images_at_once):
            part = slice(start, start + self._images_at_once)
            self._move_images(
                found[part], lambda table, of, count, at=order[part]: move(table, of, at)
            )

    def move_all(self, move: MoveAll) -> None:
        for start in range(0, self.rows, self._images_at_once):
            found = np.arange(start, min(start + self._images_at_once, self.rows), dtype=np.int32)
            self._move_images(found, lambda table, of, count: move(table, count))

    def page(self, first: int, end: int) -> tuple[I64, F32]:
        ids, found = self.ids(first, end), np.arange(first, end, dtype=np.int32)
        weights: F32 = np.empty((len(ids), self.layout.width), np.float32)
        self._load(ids, np.arange(len(ids), dtype=np.int32), found, weights)
        return ids, weights

    def _move_images(self, found: I32, move: Any) -> None:
        images = np.empty((len(found), self._image.words), np.float32)
        of, image = np.empty(len(found), np.int32), self._image
        where = (self.layout.weights_at, self.layout.state_at, self._is_bfloat, found, images)
        count = take_images_(self.slab.rows, *where, self.layout.width, of)
        move(RowTable(images, image.weights_at, images, image.state_at), of, count)
        store_images_(self.slab.rows, *where, self.layout.width, of)

    def _load(self, ids: I64, order: I32, found: I32, out: F32) -> None:
        scratch = np.empty(self.layout.width, np.uint16)
        read_half_rows(
            *(self.slab.rows, self.layout.weights_at, self._is_bfloat, ids, order, found),
            *(*self._absent, scratch, out),
        )

    def _begin(self, first: int, end: int) -> None:
        super()._begin(first, end)
        scratch = np.empty(self.layout.width, np.float32)
        begin_half_rows_(
            *(self.slab.rows, self.layout.weights_at, self._is_bfloat, first, end),
            *(*self._start, scratch),
        )
