"""docs/reference/fleet.md agrees with the code, row by row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from psrt.config import older_variables, roles
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.fluid.distributed.fleet import DistributedStrategy as Strategy2x
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)
from psrt.fluid.transpiler.runtime_configs import (
    EFFECTS,
    IN_EVERY_MODE,
    ONLY_ASYNC,
    ServerRuntimeConfig,
    TrainerRuntimeConfig,
)
from tests.support.pages import page

TEXT = page("reference/fleet.md")
MODES: dict[str, type[Any]] = {"Sync": Sync, "HalfAsync": HalfAsync, "Async": Async, "Geo": Geo}


def rows(header: str) -> list[list[str]]:
    """The cells of the tables whose header begins so, without back quotes around a whole cell."""
    tables = re.findall(rf"^\| {re.escape(header)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.M)
    assert tables, f"docs/reference/fleet.md has no table | {header}"
    lines = "".join(tables).splitlines()
    return [
        [re.sub(r"^`([^`]*)`$", r"\1", c.strip()) for c in line[1:-1].split("|")] for line in lines
    ]


def test_every_variable_is_documented() -> None:
    """Every variable except PADDLE_INIT_*, those of v2."""
    sources = "".join(Path(str(room.__file__)).read_text() for room in (roles, older_variables))
    read = set(re.findall(r'"((?:PADDLE|OMPI|PMI|SLURM)_\w+|POD_IP|TRAINING_ROLE)"', sources))
    read |= {"OMPI_COMM_WORLD_LOCAL_SIZE"}  # its name is put together

    expected = sorted(name for name in read if not name.startswith("PADDLE_INIT_"))
    assert sorted(row[0] for row in rows("variable |")) == expected


@pytest.mark.parametrize("row", rows("strategy |"), ids=lambda row: row[0])
def test_a_strategy_is_the_mode_and_keeps_the_fields_of_its_row(row: list[str]) -> None:
    name, argument = re.fullmatch(r"(\w+)\((\d*)\)", row[0]).groups()  # type: ignore[union-attr]
    strategy = getattr(StrategyFactory, name)(*map(int, filter(None, [argument])))
    kept = dict(pair.split("=") for pair in row[2].split())

    assert strategy.mode() == mode_of(row[1])
    assert {field: str(value) for field, value in strategy.flags.items()} == kept


@pytest.mark.parametrize("row", rows("part |"), ids=lambda row: row[0])
def test_a_part_of_a_strategy_is_of_the_kind_of_its_row(row: list[str]) -> None:
    part = getattr(StrategyFactory.create_sync_strategy(), f"get_{row[0]}")()

    assert type(part).__name__ == row[1]


def test_every_knob_is_documented_with_its_default_and_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CPU_NUM", "7")
    knobs = {row[0]: row for row in rows("knob |")}
    defaults = {
        name: "CPU_NUM" if value == 7 else str(value)
        for kind in (TrainerRuntimeConfig, ServerRuntimeConfig)
        for name, value in kind.defaults().items()
    }

    assert {name: row[1] for name, row in knobs.items()} == defaults
    for name in TrainerRuntimeConfig.defaults():
        effect = knobs[name][2]
        assert (effect == EFFECTS[name]) if name in EFFECTS else effect not in EFFECTS.values()
        assert effect.startswith("nothing") == (name not in (*ONLY_ASYNC, *IN_EVERY_MODE))


def test_every_call_is_documented() -> None:
    public = {name for name in dir(DistributedTranspiler) if not name.startswith("_")}

    assert {row[0].split("(")[0] for row in rows("call |")} == public


@pytest.mark.parametrize("row", rows("`a_sync` |"), ids=lambda row: row[2])
def test_the_2x_flags_mean_the_mode_of_their_row(row: list[str]) -> None:
    strategy = Strategy2x()
    strategy.a_sync = row[0] == "True"
    strategy.a_sync_configs = {"k_steps": 0 if row[1] == "0" else 5}

    assert type(strategy.settings.mode()) is MODES[row[2]]


def mode_of(text: str) -> CommunicationMode:
    """`Async(thread_pool_size=5)` and its like."""
    name, arguments = re.fullmatch(r"(\w+)\((.*)\)", text).groups()  # type: ignore[union-attr]
    pairs = [pair.split("=") for pair in filter(None, [arguments])]
    named = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    mode: CommunicationMode = MODES[name](*(int(p[0]) for p in pairs if len(p) == 1), **named)
    return mode
