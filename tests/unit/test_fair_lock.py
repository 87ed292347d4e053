"""A lock that its holder cannot take again while somebody waits."""

from __future__ import annotations

import threading

from psrt.pserver.fair_lock import FairLock


def test_who_waits_comes_before_who_has_just_released() -> None:
    lock, order = FairLock(), []
    at_the_door = threading.Event()

    def wait() -> None:
        at_the_door.set()
        with lock:
            order.append("waited")

    with lock:
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert at_the_door.wait(10.0)
        while not lock._door.locked():
            pass
    with lock:
        order.append("released")
    waiting.join(10.0)

    assert order == ["waited", "released"]


def test_an_error_inside_releases_the_lock() -> None:
    lock = FairLock()
    try:
        with lock:
            raise RuntimeError
    except RuntimeError:
        pass

    with lock:
        assert lock._inside.locked()
    assert not lock._inside.locked()
