"""Pserver threads flush denormals to zero, others do not."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from psrt.kernels.lowlevel import denormals
from psrt.kernels.lowlevel.denormals import denormals_flushed

TINY = np.full(4, 1e-40, np.float32)


def of_another_thread() -> float:
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(float((TINY * 2).max())))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.skipif(denormals.platform.machine() != "x86_64", reason="no other is known")  # type: ignore[attr-defined]
def test_they_are_zero_inside_and_in_threads_begun_there() -> None:
    with denormals_flushed():
        inside, of_thread = float((TINY * 2).max()), of_another_thread()

    assert (inside, of_thread) == (0.0, 0.0)


def test_they_are_numbers_again_afterwards_also_after_an_error() -> None:
    with pytest.raises(RuntimeError), denormals_flushed():
        raise RuntimeError

    assert (TINY * 2).max() > 0
    assert of_another_thread() > 0


def test_an_unknown_processor_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denormals.platform, "machine", lambda: "riscv64")  # type: ignore[attr-defined]

    with denormals_flushed():
        inside = float((TINY * 2).max())

    assert inside > 0
