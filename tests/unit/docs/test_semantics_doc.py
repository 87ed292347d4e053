"""docs/explanation/semantics.md names every setting with its true default, and every counter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import get_args

import pytest

from psrt.communicator.factory import make
from psrt.config.sections import PartitionConfig, PserverConfig, TrainerConfig
from psrt.core import specs
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from tests.support.fake_pserver import FakePserver
from tests.support.geo import TABLE, OwnByHand
from tests.support.inproc import InprocServer
from tests.support.pages import page

MODES = (Sync, Async, Ssp, HalfAsync, Geo)
TEXT = page("explanation/semantics.md")


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings() -> list[tuple[str, object]]:
    """(name as documented, default)."""
    modes = [(f.name, f.default) for mode in MODES for f in dataclasses.fields(mode)]
    partition = [(f"[partition] {f.name}", f.default) for f in dataclasses.fields(PartitionConfig)]
    deadlines = [
        ("[trainer] connect_timeout_s", TrainerConfig.connect_timeout_s),
        ("[trainer] call_timeout_s", TrainerConfig.call_timeout_s),
        ("[pserver] wait_timeout_s", PserverConfig.wait_timeout_s),
    ]
    return modes + partition + deadlines


@pytest.mark.parametrize(("name", "default"), settings())
def test_every_setting_is_documented_with_its_default(name: str, default: object) -> None:
    assert f"| `{name}` | {shown(default)} |" in TEXT


@pytest.mark.parametrize("mode", MODES)
def test_every_counter_is_documented(mode: Callable[[], CommunicationMode]) -> None:
    client = Client("ps0:1", 0, 1, InprocServer(FakePserver(1)), pb.Hello())
    plan, own = PartitionPlan(("ps0:1",), (), (TABLE,)), OwnByHand()
    communicator = make(mode(), plan, [client], call_timeout_s=1.0, own=own)
    communicator.close()

    names = [name.removesuffix("_events") for name in communicator.counters.snapshot()]

    assert names
    assert [name for name in names if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize("kind", get_args(specs.Optimizer) + get_args(specs.LearningRate))
def test_every_optimizer_and_schedule_is_named(kind: type) -> None:
    assert f"`{kind.__name__}`" in TEXT


@pytest.mark.parametrize("mode", specs.MODES)
def test_every_mode_has_its_place(mode: str) -> None:
    assert f"`{mode}`" in TEXT
