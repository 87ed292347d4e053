"""`psrt service`: psrt as services of systemd, installed, removed and shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from psrt.cli import results
from psrt.cli.service import installing, rendering
from psrt.cli.service.rendering import InstallTarget
from psrt.config.load import environment
from psrt.core.errors import ConfigError

_EPILOG = """\b
Examples:
  sudo psrt service install              services of the system, run by the user psrt
  psrt service install --user            services of yours
  psrt service install --dry-run         print the files and commands, change nothing
  psrt service install --root build --prefix /usr --psrt /usr/bin/psrt     for a package
"""
_NEXT = """\
Next:
  {systemctl} enable --now psrt-pserver@6170    a pserver on port 6170
  {systemctl} enable --now psrt-trainer@0       trainer 0, with JOB=/path/of/job.toml in
                                                {config}/trainer/0.env
  {systemctl} enable psrt.target                to start them at boot
  {systemctl} status psrt-pserver@6170          its state; journalctl {journal}-u psrt-pserver@6170
Settings: {config}/psrt.toml, {config}/conf.d/*.toml, {config}/pserver/6170.env{examples}"""


def _place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--user", is_flag=True, help="Services of this user, not of the system."),
        click.option(
            "--root",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("/"),
            help="Directory that stands for / in the places of files; systemd is left alone.",
        ),
        click.option("--prefix", default="", help="Where a package installs, such as /usr."),
    )
    for option in reversed(options):
        command = option(command)
    return command


dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would be done, and change nothing."
)
psrt_option = click.option(
    "--psrt", "command", default="", help="Command that starts psrt; default: this one."
)


@click.group("service", epilog=_EPILOG)
def service() -> None:
    """Run pservers and trainers as services of systemd.

    Services are named by what they run: psrt-pserver@PORT and psrt-trainer@NUMBER; psrt.target
    stands for all of them.
    """


@service.command("install")
@_place_options
@psrt_option
@dry_run_option
def install(*, user: bool, root: Path, prefix: str, command: str, dry_run: bool) -> None:
    """Write the files of systemd for this psrt; may be repeated."""
    target = _target(user, root, prefix)
    command = command or rendering.own_command()
    if target.is_this_host and not (user or dry_run):
        rendering.check_readable(command)
    files = rendering.files(target, command)
    following = installing.commands_after(target, True) if target.is_this_host else []
    if dry_run:
        for path, text in files.items():
            results.write(f"# {path}\n{text}")
        for words in following:
            results.write(f"# {' '.join(words)}")
        return
    _check_systemd(target)
    for line in installing.write(files):
        results.write(line)
    _run_all(following)
    if following:
        results.write(_next_steps(target))


@service.command("uninstall")
@_place_options
@dry_run_option
def uninstall(*, user: bool, root: Path, prefix: str, dry_run: bool) -> None:
    """Remove the files of systemd; settings, cuts and the user psrt stay."""
    target = _target(user, root, prefix)
    paths = list(rendering.files(target, ""))
    if dry_run:
        for path in paths:
            results.write(f"remove {path}")
        return
    _check_systemd(target)
    if target.is_this_host:
        _check_stopped(target)
    lines = installing.remove(paths)
    for line in lines or ["nothing is installed"]:
        results.write(line)
    if lines and target.is_this_host:
        _run_all(installing.commands_after(target, False))
        if not user:
            results.write("kept: /etc/psrt, /var/lib/psrt, /var/cache/psrt and the user psrt")


@service.command("status")
@_place_options
@psrt_option
def status(*, user: bool, root: Path, prefix: str, command: str) -> int:
    """Print whether the files are those of this psrt, and the services; exit code 1 if not."""
    target = _target(user, root, prefix)
    files = rendering.files(target, command or rendering.own_command())
    found = installing.states(files)
    for path, state in found.items():
        results.write(f"{state:<10}{path}")
    if target.is_this_host:
        installing.check_present("systemctl")
        for line in installing.services(target) or ["no service of psrt is loaded"]:
            results.write(line)
    return int(set(found.values()) != {installing.INSTALLED})


def _target(user: bool, root: Path, prefix: str) -> InstallTarget:
    variables = environment()
    home = variables.get("XDG_CONFIG_HOME") or f"{variables.get('HOME', '/root')}/.config"
    return InstallTarget(user, root, prefix, Path(home))


def _check_systemd(target: InstallTarget) -> None:
    if target.is_this_host:
        installing.check_present("systemctl")


def _check_stopped(target: InstallTarget) -> None:
    """Raise `ConfigError` if services run: nothing would restart or end them in order."""
    lines = [line.split() for line in installing.services(target)]
    running = [words[0] for words in lines if words[2:3] not in (["inactive"], ["failed"])]
    if running:
        raise ConfigError(
            f"{' and '.join(running)} run; nothing was removed.",
            hint="End them first: systemctl stop psrt.target, or each by its name.",
        )


def _run_all(commands: list[list[str]]) -> None:
    for words in commands:
        installing.run(words)
        results.write(f"{'ran':<10}{' '.join(words)}")


def _next_steps(target: InstallTarget) -> str:
    config = f"{target.config_home}/psrt" if target.is_user else "/etc/psrt"
    of_user = " --user" if target.is_user else ""
    journal = "--user " if target.is_user else ""
    examples = "" if target.is_user else "; examples beside them"
    return _NEXT.format(
        systemctl=f"systemctl{of_user}", config=config, journal=journal, examples=examples
    )
