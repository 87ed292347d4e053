"""Rows at positions and their pools are those of torch, and so are gradients and errors."""

from __future__ import annotations

from itertools import pairwise

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import torch.nn.functional as F  # noqa: E402

from psrt.torch.pooling import gathered_rows, pooled_rows  # noqa: E402

ROWS, WIDTH = 7, 4

BAGS = {
    "equal": ((3, 2), None),
    "single": ((6, 1), None),
    "single_by_offsets": ((6,), [0, 1, 2, 3, 4, 5]),
    "jagged": ((6,), [0, 1, 4]),
    "empty_ones": ((6,), [0, 0, 2, 2, 6]),
    "no_ids": ((0,), [0, 0]),
}
ENDS = [(kind, last) for kind in BAGS for last in (False, True) if BAGS[kind][1] or not last]
"""Only offsets have a last one."""


def made(shape):
    """Rows, and positions that repeat."""
    torch.manual_seed(1)
    rows = torch.randn(ROWS, WIDTH, requires_grad=True)
    return rows, torch.randint(0, ROWS - 1, shape, dtype=torch.int32)


def by_torch(positions, rows, offsets, mode, has_last=False):
    return F.embedding_bag(positions, rows, offsets, mode=mode, include_last_offset=has_last)


def both(rows, mode, positions, offsets, has_last):
    yield pooled_rows(rows, positions, offsets, mode, None, has_last)
    typed = None if offsets is None else offsets.to(positions.dtype)
    yield by_torch(positions, rows, typed, mode, has_last)


@pytest.mark.parametrize(("kind", "has_last"), ENDS)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_and_their_gradients_are_those_of_torch(kind, mode, has_last):
    shape, starts = BAGS[kind]
    rows, positions = made(shape)
    offsets = None
    if starts is not None:
        offsets = torch.tensor([*starts, *[len(positions)] * has_last])
    ours, theirs = both(rows, mode, positions, offsets, has_last)
    torch.testing.assert_close(ours, theirs)
    weights = torch.randn(ours.shape)
    gradients = [torch.autograd.grad((out * weights).sum(), rows)[0] for out in (ours, theirs)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("kind", ["equal", "single", "jagged"])
def test_gradients_of_gradients_exist(kind):
    """A penalty on the norm of gradients, as some losses have it."""
    shape, starts = BAGS[kind]
    rows, positions = made(shape)
    offsets = None if starts is None else torch.tensor(starts)
    starts = starts or list(range(0, positions.numel(), shape[-1]))
    counts = torch.zeros(len(starts), ROWS)
    for bag, (start, stop) in enumerate(pairwise([*starts, positions.numel()])):
        for position in positions.reshape(-1)[start:stop].tolist():
            counts[bag, position] += 1
    found = []
    for out in (pooled_rows(rows, positions, offsets, "sum"), counts @ rows):
        (first,) = torch.autograd.grad(out.pow(3).sum(), rows, create_graph=True)
        found.append(torch.autograd.grad(first.pow(2).sum(), rows)[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("offsets", [[1, 2], [0, 7]], ids=["begin_late", "end_late"])
def test_offsets_that_are_no_bags_get_the_answer_of_torch(offsets):
    """Kernels trust their offsets: these must not reach one."""
    rows, positions = made((6,))
    given = torch.tensor(offsets, dtype=torch.int32)
    with pytest.raises((RuntimeError, ValueError)) as ours:
        pooled_rows(rows, positions, given, "sum")
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        by_torch(positions, rows, given, "sum")
    assert str(ours.value) == str(theirs.value)


def test_rows_of_another_type_are_pooled_by_torch():
    rows, positions = made((3, 2))
    wide = rows.detach().double()
    assert pooled_rows(wide, positions, None, "sum").dtype == torch.float64
    assert gathered_rows(wide, positions[:, 0]).dtype == torch.float64


def test_gradients_that_are_views_add_up():
    """That of a sum has strides of 0, that of a transposed row is a column."""
    rows, positions = made((6,))
    counts = torch.bincount(positions.long(), minlength=ROWS).float()
    for loss in (
        gathered_rows(rows, positions).sum(),
        gathered_rows(rows, positions).T.contiguous().sum(),
    ):
        (found,) = torch.autograd.grad(loss, rows)
        torch.testing.assert_close(found, counts[:, None].repeat(1, WIDTH))


def test_compiled_functions_pool_without_a_break():
    rows, positions = made((3, 2))
    compiled = torch.compile(
        lambda found: pooled_rows(found, positions, None, "sum"), backend="eager", fullgraph=True
    )
    torch.testing.assert_close(compiled(rows), pooled_rows(rows, positions, None, "sum"))
