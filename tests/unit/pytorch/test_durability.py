"""The durability of a PyTorch job: from an argument or the environment, and what it needs."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError  # noqa: E402
from psrt.torch import connecting  # noqa: E402
from tests.support.live_pservers import live_pservers  # noqa: E402


@pytest.mark.parametrize(
    ("given", "variables", "expected"),
    [
        ({}, {}, ("none", 0)),
        ({"durability": "cut"}, {}, ("cut", 1024 << 20)),
        ({}, {"PSRT_JOB_DURABILITY": "delta"}, ("delta", 1024 << 20)),
        ({"retained_mib": 3}, {"PSRT_JOB_DURABILITY": "replica"}, ("replica", 3 << 20)),
        ({"durability": "none"}, {"PSRT_JOB_DURABILITY": "cut"}, ("none", 0)),
    ],
    ids=str,
)
def test_an_argument_precedes_the_environment(
    given: dict[str, Any],
    variables: dict[str, str],
    expected: tuple[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(connecting, "ConnectedTables", lambda *numbers: made.append(numbers))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    pt.connect("127.0.0.1:1", **given)

    assert made[0][-2:] == expected


def test_an_unknown_durability_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'often', expected one of") as caught:
        pt.connect("127.0.0.1:1", durability="often")

    assert "none, cut, delta, replica" in caught.value.message


@pytest.mark.parametrize(
    ("durability", "named"),
    [("cut", "Start them with --checkpoint-dir"), ("replica", "Start a second pserver")],
)
def test_pservers_that_cannot_be_durable_are_refused_with_what_to_do(
    durability: str, named: str
) -> None:
    with (
        live_pservers(1) as (server,),
        pt.connect(server.endpoint, timeout_s=60.0, durability=durability) as session,
    ):
        items = pt.Embedding(2, "items")
        with pytest.raises(ConfigError) as caught:
            items(torch.tensor([1]))
        session.close()

    assert named in (caught.value.hint or "")
