"""`psrt token`: makes, lists and revokes the tokens by which pservers admit callers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from psrt.cli import results
from psrt.core import whole_file
from psrt.core.errors import ConfigError
from psrt.rpc.access import SCOPES, Token, new_key, read_tokens, text_of

_DAY_S = 86_400
_EPILOG = """\b
Examples:
  psrt token create pservers --scope admin --file cluster.toml
  psrt token create ctr --scope train --job ctr_dnn --days 90 --file cluster.toml --copy ctr.toml
  psrt token list --file cluster.toml
  psrt token revoke ctr --file cluster.toml
Start pservers with --token-file cluster.toml, trainers with --token-file ctr.toml.
"""

file_option = click.option(
    "--file", "path", required=True, type=click.Path(path_type=Path), help="File of the tokens."
)


@click.group("token", epilog=_EPILOG)
def token() -> None:
    """Make, list and revoke the tokens of a cluster.

    A token is a name with a secret key and a scope: read (facts and tables), train (all that a
    trainer does), admin (also calls between pservers, and psrt scale). Keys never travel: callers
    prove that they have one. Pservers read a changed file within seconds.
    """


@token.command("create")
@click.argument("name")
@click.option("--scope", required=True, type=click.Choice(SCOPES), help="What it allows.")
@click.option("--job", default="", help="Good for the job of this name only; default: for all.")
@click.option(
    "--days", default=0, type=click.IntRange(min=0), help="Days until it expires; default: never."
)
@click.option(
    "--copy",
    type=click.Path(path_type=Path),
    help="Also write it alone to this file, for the one who is to use it.",
)
@file_option
def create(*, name: str, scope: str, job: str, days: int, copy: Path | None, path: Path) -> None:
    """Add a token with a new key to a file, which is made if there is none."""
    tokens = read_tokens(path) if path.exists() else {}
    if name in tokens or not name.isidentifier():
        raise ConfigError(
            f"{path}: the name {name!r} is taken, or has other characters than letters, digits and "
            "underscores; no token was made.",
            hint="Take another name, or revoke that token first.",
        )
    ends_s = float(_today_s() + days * _DAY_S) if days else 0.0
    made = Token(name, new_key(), scope, job, ends_s)
    if copy is not None:
        _write(copy, {name: made})
    _write(path, {**tokens, name: made})
    results.write(f"token {name} of scope {scope} is in {path}")


@token.command("list")
@file_option
def list_(*, path: Path) -> None:
    """Print name, scope, job and end of each token, and no keys."""
    for each in read_tokens(path).values():
        end = datetime.fromtimestamp(each.expires_s, UTC).date() if each.expires_s else "never"
        results.write(f"{each.name:<16} {each.scope:<6} job {each.job or 'any':<16} expires {end}")


@token.command("revoke")
@click.argument("name")
@file_option
def revoke(*, name: str, path: Path) -> None:
    """Delete a token: pservers refuse calls of those who have proved it, within seconds."""
    tokens = read_tokens(path)
    if name not in tokens:
        raise ConfigError(f"{path}: there is no token {name!r}.", hint="See psrt token list.")
    _write(path, {key: each for key, each in tokens.items() if key != name})
    results.write(f"token {name} is revoked")


def _write(path: Path, tokens: Mapping[str, Token]) -> None:
    """Write a private file at once."""
    text = "\n".join(text_of(each) for each in tokens.values())
    whole_file.write(path, text, is_private=True)


def _today_s() -> int:
    return int(datetime.now(UTC).timestamp()) // _DAY_S * _DAY_S
