"""One box with a real systemd for all tests of services."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import systemd_box


@pytest.fixture(scope="session")
def box() -> Iterator[systemd_box.SystemdBox]:
    if lack := systemd_box.missing():
        pytest.skip(lack)
    with systemd_box.SystemdBox(Path(f"/run/psrt-box-{os.getpid()}")) as found:
        yield found
