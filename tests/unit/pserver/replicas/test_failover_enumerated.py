"""All orders of events of a failover: no push is lost or counts twice, no two pservers are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from psrt.pserver.replicas.copy_state import CopyState
from tests.support.failover_world import FailoverWorld, ModelPserver

MOST_STATES = 8_000


def explored() -> list[FailoverWorld]:
    """The states that any events lead to, nearest first, each of them checked."""
    world = FailoverWorld()
    seen, found, edge = {world.key}, [world], [world]
    while edge and len(found) < MOST_STATES:
        following: list[FailoverWorld] = []
        for state in edge:
            for name, event in state.events():
                after = state.after(event)
                if after.key not in seen:
                    seen.add(after.key)
                    try:
                        after.check()
                    except AssertionError as error:
                        raise AssertionError(f"{error} after {name}: {after.key}") from error
                    following.append(after)
        found, edge = [*found, *following], following
    return found


def test_in_no_order_of_events_a_push_is_lost_or_two_pservers_are_used() -> None:
    states = explored()

    assert len(states) > 5_000
    assert any(each.serves == 1 for state in states for each in state.pservers.values())


def _no_unanimity(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, trainer, epoch, using: original(self, trainer, epoch, [trainer])


def _any_tables(original: Callable[..., Any]) -> Callable[..., Any]:
    def is_foreign(self: CopyState, piece: Any) -> bool:
        return bool(piece.epoch < self.epoch or self.serves)

    return is_foreign


def _durable_before_it_is_confirmed(original: Callable[..., Any]) -> Callable[..., Any]:
    def tick(self: FailoverWorld, name: str, reply_is_lost: bool = False) -> None:
        sender = self.pservers[name]
        sender.durable = frozenset(sender.tables)
        original(self, name, reply_is_lost)

    return tick


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "takeover without unanimity": (CopyState, "deposed", _no_unanimity),
    "a copy of empty tables replaces that of a job": (CopyState, "_is_foreign", _any_tables),
    "durable before it is confirmed": (FailoverWorld, "tick", _durable_before_it_is_confirmed),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_enumeration_finds_a_planted_mistake(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, method, make = MISTAKES[name]
    monkeypatch.setattr(owner, method, make(owner.__dict__[method]))

    with pytest.raises(AssertionError, match=r"lost|at once"):
        explored()


def test_a_pserver_has_no_copy_before_the_first_tick() -> None:
    assert not ModelPserver("home").copy.is_copy
