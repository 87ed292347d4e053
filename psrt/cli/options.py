"""Command-line options made from the configuration schema, and their spelling.

No option has a default here, so an option that is not given does not hide a variable or a TOML key.
Options are text, because `psrt.config` parses all sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from psrt.config.render import toml_value
from psrt.config.sections import SECTIONS
from psrt.config.settings import STRINGS, Setting, settings_of

Command = TypeVar("Command", bound=Callable[..., Any])
_METAVARS: dict[Any, str] = {str: "TEXT", int: "INTEGER", float: "NUMBER", STRINGS: "A,B,..."}


def dashed(word: str) -> str:
    """Return a flag or command with hyphens instead of underscores."""
    return word.replace("_", "-")


def options_of(cls: type[Any]) -> Callable[[Command], Command]:
    """Decorate a command with one option per setting of `cls`, and its positional arguments.

    The command receives them as keyword arguments by field name, None when not given.
    """
    section = next(name for name, known in SECTIONS.items() if known is cls)
    decorators = [_parameter(setting) for setting in settings_of(section, cls)]

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


token_option = click.option(
    "--token-file",
    default="",
    envvar="PSRT_TRAINER_TOKEN_FILE",
    metavar="FILE",
    help="File with the token to prove, for pservers with a token_file.",
)
"""The option of commands that call pservers of a running job."""


def _parameter(setting: Setting) -> Callable[[Command], Command]:
    if setting.positional:
        return click.argument(setting.name, metavar=setting.positional)
    if setting.type is bool:
        names = f"{setting.flag}/--no-{setting.flag[2:]}"
        return click.option(names, setting.name, default=None, help=_help(setting))
    metavar = "|".join(filter(None, setting.choices)) or _METAVARS[setting.type]
    return click.option(setting.flag, setting.name, metavar=metavar, help=_help(setting))


def _help(setting: Setting) -> str:
    empty = setting.default in ("", ())
    default = "" if empty else f"  [default: {toml_value(setting.default).strip(chr(34))}]"
    return setting.help + default
