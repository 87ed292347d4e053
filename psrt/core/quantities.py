"""Sizes, rates and counts as people write them: 64GiB, 10Gbit/s, 1.5M.

Bytes have decimal (kB, MB, GB, TB) and binary (KiB, MiB, GiB, TiB) units; rates count bits
(Mbit/s) or bytes (MB/s); counts have k, M, G. A number without a unit is refused where units
differ, because it is ambiguous.
"""

from __future__ import annotations

import math
import re

from psrt.core.errors import ConfigError

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_WRITTEN = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)\s*")


def size_bytes(text: str, name: str) -> int:
    """Return `64GiB` in bytes; `name` names the value in the message of a `ConfigError`."""
    number, unit = _split(text, name)
    if not unit.endswith("B") or (factor := _factor(unit[:-1])) is None:
        raise ConfigError(
            f"{name} is {text!r}, which is no size in bytes.", hint="Write it like 64GiB or 500MB."
        )
    return int(number * factor)


def bytes_per_s(text: str, name: str) -> float:
    """Return `10Gbit/s` or `1.25GB/s` in bytes per second; raises `ConfigError`."""
    number, unit = _split(text, name)
    for ending, bits in (("bit/s", 8), ("B/s", 1)):
        if unit.endswith(ending) and (factor := _factor(unit[: -len(ending)])) is not None:
            return number * factor / bits
    raise ConfigError(
        f"{name} is {text!r}, which is no rate.", hint="Write it like 10Gbit/s or 1.25GB/s."
    )


def count(text: str, name: str) -> int:
    """Return `5M`, `1e9` or `1000` as an integer; raises `ConfigError`."""
    number, unit = _split(text, name)
    if unit not in _DECIMAL:
        raise ConfigError(
            f"{name} is {text!r}, which is no count.", hint="Write it like 5M or 1e9."
        )
    return int(number * _DECIMAL[unit])


def counted(number: int, noun: str) -> str:
    """A number and a noun, in the plural unless it is one: `1,024 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_bytes(size: float) -> str:
    """Format bytes as `3.2 GiB`."""
    return _format(size, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def format_rate(bytes_per_s: float) -> str:
    """Format bytes per second as `812 Mbit/s`."""
    return _format(bytes_per_s * 8, 1000, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def _format(value: float, base: int, units: tuple[str, ...]) -> str:
    """Format with three digits, in the unit that leaves at least one before the point."""
    for unit in units[:-1]:
        if round(value, 1) < base:
            return f"{_three_digits(value)} {unit}"
        value /= base
    return f"{_three_digits(value)} {units[-1]}"


def _three_digits(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _factor(prefix: str) -> int | None:
    return {**_DECIMAL, **_BINARY}.get(prefix)


def _split(text: str, name: str) -> tuple[float, str]:
    matched = _WRITTEN.fullmatch(text)
    try:
        number = float(matched[1]) if matched else math.nan
    except ValueError:  # such as 1.2.3
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"{name} is {text!r}, which does not begin with a number.")
    assert matched is not None
    return number, matched[2]
