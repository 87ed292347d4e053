"""Command-line options made from the configuration schema, and their spelling.

No option has a default here, so an option that is not given does not hide a variable or a TOML key.
Options are text, because `psrt.config` parses all sources.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from psrt.config.assignments import assigned
from psrt.config.load import export
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


_SHORT_HELP = {
    "epochs": "Epochs in place of the job's.",
    "batch_size": "Examples of one mini-batch of one trainer in place of the job's.",
}


def job_options(*short: str) -> Callable[[Command], Command]:
    """Decorate a command that reads a job file with `--set`, and with some flags of
    `psrt.config.assignments.SHORT`; they are in force, also for child processes, when it runs."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def assigning(*arguments: Any, assignments: tuple[str, ...], **flags: Any) -> Any:
            given = {name: flags.pop(f"job_{name}") for name in short}
            if found := assigned(assignments, given):
                export(found)
            return command(*arguments, **flags)

        decorated: Any = assigning
        for name in reversed(short):
            option = click.option(
                f"--{dashed(name)}", f"job_{name}", metavar="INTEGER", help=_SHORT_HELP[name]
            )
            decorated = option(decorated)
        return cast(
            "Command",
            click.option(
                "--set",
                "assignments",
                multiple=True,
                metavar="SECTION.KEY=VALUE",
                help="Set any setting, or an argument of build(): --set job.params.rate=0.1.",
            )(decorated),
        )

    return decorate


_ACCESS = {
    "token_file": "File with the token to prove, for pservers with a token_file.",
    "tls_ca": "PEM file of the authority of the pservers' certificates, for those that encrypt.",
    "tls_cert": "PEM file of the certificate to show to pservers that encrypt.",
    "tls_key": "PEM file of the key of --tls-cert.",
}


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command that calls pservers of a running job; it runs as who the options name."""

    @functools.wraps(command)
    def identified(*, token_file: str, tls_ca: str, tls_cert: str, tls_key: str, **own: Any) -> Any:
        from psrt.rpc.access import assume_certificates, assume_token_of
        from psrt.rpc.tls import TlsSettings

        if token_file:
            assume_token_of(token_file)
        assume_certificates(TlsSettings(tls_cert, tls_key, tls_ca))
        return command(**own)

    for name, text in reversed(_ACCESS.items()):
        flag, variable = f"--{dashed(name)}", f"PSRT_TRAINER_{name.upper()}"
        option = click.option(flag, name, default="", envvar=variable, metavar="FILE", help=text)
        identified = option(identified)
    return identified


def _parameter(setting: Setting) -> Callable[[Command], Command]:
    if setting.positional:
        return click.argument(setting.name, metavar=setting.positional, type=click.Path())
    if setting.type is bool:
        names = f"{setting.flag}/--no-{setting.flag[2:]}"
        return click.option(names, setting.name, default=None, help=_help(setting))
    metavar = "|".join(filter(None, setting.choices)) or _METAVARS[setting.type]
    completed = functools.partial(_completed, setting)
    return click.option(
        *filter(None, (setting.flag, setting.alias)),
        setting.name,
        metavar=metavar,
        help=_help(setting),
        shell_complete=completed,
    )


def _completed(
    setting: Setting, ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Values for the completion of a shell: the choices of a setting, else files."""
    if setting.choices:
        return [CompletionItem(each) for each in setting.choices if each.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file")]


def _help(setting: Setting) -> str:
    empty = setting.default in ("", ())
    default = "" if empty else f"  [default: {toml_value(setting.default).strip(chr(34))}]"
    return setting.help + default
