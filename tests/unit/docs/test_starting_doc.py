"""docs/how-to/start-a-cluster.md names every way to tell a process its part, and what each sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psrt
from psrt.config.init import InitArguments
from psrt.config.older_flags import INSTEAD
from psrt.config.older_variables import DEFAULT_PORT, RULES, V2_PORT
from psrt.config.sections import SECTIONS
from psrt.config.settings import settings_of
from tests.support.pages import page

ROOT = Path(__file__).parents[3]
TEXT = page("how-to/start-a-cluster.md")
ONLY_FOR_ROLES = {"TRAINING_ROLE", "PADDLE_PSERVER_ID", "PADDLE_INIT_USE_GPU"}


def table(head: str) -> Iterator[list[str]]:
    """The cells of every row of the table with that head line."""
    body = TEXT.split(f"\n{head}\n")[1].split("\n\n")[0]
    for line in body.splitlines()[1:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w.]+)`", cell)


def test_every_role_variable_stands_in_the_table_with_the_settings_it_sets() -> None:
    told = {
        names(row[0])[0]: names(row[1]) for row in table("| variable | setting | what it says |")
    }

    declared: dict[str, list[str]] = {name: [] for name in ONLY_FOR_ROLES}
    for section, cls in SECTIONS.items():
        for setting in settings_of(section, cls):
            for variable in setting.role_variables:
                declared.setdefault(variable, []).append(setting.key)
    assert told == declared


def test_every_older_name_stands_beside_the_newer_one() -> None:
    told = {(*names(row[0]), "→", names(row[1])[0]) for row in table("| older | says |")}

    assert told == {(*rule.sources, "→", rule.name) for rule in RULES}


def test_the_ports_that_nobody_says_are_those_of_the_code() -> None:
    assert f"`PADDLE_PSERVERS_IP_PORT_LIST`; without a port, {DEFAULT_PORT} |" in TEXT
    assert f"`PADDLE_PSERVERS_IP_PORT_LIST`; without a port, {V2_PORT};" in TEXT


def test_every_argument_of_init_stands_in_the_table_as_declared() -> None:
    told = list(table("| argument | variable | default | what it says |"))

    def shown(default: object) -> str:
        return ",".join(default) if isinstance(default, tuple) else str(default)

    assert told == [
        [f"`{s.name}`", f"`PADDLE_INIT_{s.name.upper()}`", f"`{shown(s.default)}`", s.help]
        for s in settings_of("init", InitArguments)
    ]
    assert set(psrt.init.__kwdefaults__) == {s.name for s in settings_of("init", InitArguments)}


def test_every_flag_that_is_gone_stands_with_its_answer() -> None:
    told = {name: row[1] for row in table("| flag | instead |") for name in names(row[0])}

    assert told == INSTEAD
