"""Waiting for a change ends by the change, or after the core was offered so many times."""

from __future__ import annotations

import threading

import numpy as np

from psrt.kernels.spin import await_change


def test_a_change_before_ends_it_at_once():
    await_change(np.array([2]), 1, 1 << 62)


def test_without_a_change_it_ends_after_some_offers_of_the_core():
    await_change(np.array([1]), 1, 10)


def test_a_change_by_another_thread_ends_it():
    counter = np.array([1])
    waiting = threading.Thread(target=await_change, args=(counter, 1, 1 << 62))
    waiting.start()

    counter[0] = 2

    waiting.join(30)
    assert not waiting.is_alive()
