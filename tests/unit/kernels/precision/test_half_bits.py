"""float16 by whole numbers agrees with numpy's; which processors need it."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.precision import half_bits
from psrt.kernels.precision.halves import converts_float16

EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)


def floats_around_halves() -> np.ndarray:
    """Each seventh half, and numbers next to it, between it and the next, and halfway."""
    halves = EVERY_HALF[::7]
    with np.errstate(invalid="ignore"):
        bits = halves.view(np.float16).astype(np.float32).view(np.uint32)
    near = np.concatenate([bits + np.uint32(low) for low in (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF)])
    x = near.view(np.float32)
    return x[(np.abs(x) <= 65504) | ~np.isfinite(x)]


def test_floats_are_rounded_as_by_numpy() -> None:
    tiny = np.array([0.0, -0.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, -(2.0**-149)], np.float32)
    x = np.concatenate([floats_around_halves(), tiny])

    got = np.array([half_bits.truncated(each) for each in x], np.uint16)

    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(np.float16).view(np.uint16)
    nan = np.isnan(x)
    np.testing.assert_array_equal(got[~nan], wanted[~nan])
    assert np.isnan(got[nan].view(np.float16)).all()


def test_every_half_comes_back_as_in_numpy() -> None:
    got = np.array([half_bits.extended(each) for each in EVERY_HALF], np.float32)

    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, EVERY_HALF.view(np.float16).astype(np.float32))


@pytest.mark.parametrize(
    ("machine", "features", "does"),
    [
        ("x86_64", {"f16c": True}, True),
        ("x86_64", {"f16c": False}, False),
        ("AMD64", {}, False),
        ("aarch64", {}, True),
    ],
)
def test_x86_needs_f16c(machine: str, features: dict[str, bool], does: bool) -> None:
    assert converts_float16(machine, features) is does
