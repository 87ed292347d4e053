"""Groups of commands whose modules are imported when a command runs.

Help and completion of a group print lines that are declared with it, so they import no command.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class Subcommand:
    """The module of a command, and its line in the help of its group."""

    module: str
    attribute: str
    help: str


class LazyGroup(click.Group):
    """A group whose `subcommands`, by name, are imported when they are invoked."""

    def __init__(self, *, subcommands: Mapping[str, Subcommand], **settings: Any) -> None:
        super().__init__(**settings)
        self.subcommands = subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.subcommands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.subcommands:
            return None
        where = self.subcommands[name]
        command: click.Command = getattr(importlib.import_module(where.module), where.attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands with their lines, then flags."""
        named = [
            CompletionItem(name, help=command.help)
            for name, command in self.subcommands.items()
            if name.startswith(incomplete)
        ]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.help) for name, each in self.subcommands.items()])
