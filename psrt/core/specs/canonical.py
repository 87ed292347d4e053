"""The canonical form of specs: plain data and JSON.

Every spec has one JSON text (`to_json`), used on the wire, in the plan hash, in manifests and in
conflict messages.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any, get_args

from psrt.core.errors import ConfigError
from psrt.core.specs.admission import Admission, Score
from psrt.core.specs.lifecycle import Growth, Lifecycle
from psrt.core.specs.modes import CommunicationMode
from psrt.core.specs.optimizers import Optimizer
from psrt.core.specs.regularizers import Regularizer
from psrt.core.specs.schedules import LearningRate
from psrt.core.specs.table_options import TableOptions
from psrt.core.specs.table_specs import Initializer, TableSpec
from psrt.core.specs.warm_starts import WarmRule, WarmStart

_ALIASES = (
    *(Initializer, LearningRate, Optimizer, Regularizer, Admission),
    *(TableSpec, CommunicationMode),
)
_PARTS = (Score, Lifecycle, Growth, TableOptions, WarmStart, WarmRule)
_KINDS: dict[str, type] = {
    cls.__name__: cls for cls in (*(cls for alias in _ALIASES for cls in get_args(alias)), *_PARTS)
}
_LEAVES = frozenset({int, float, str, bool, type(None)})
"""Types that are plain already; most values are, and ticks of pservers convert many."""


def to_plain(spec: Any) -> Any:
    """Convert dataclasses to dicts with a `kind` and tuples to lists; other values stay."""
    cls: Any = type(spec)
    if cls in _LEAVES:
        return spec
    names = _field_names(cls)
    if names is not None:
        plain: dict[str, Any] = {"kind": cls.__name__}
        for name in names:
            value = getattr(spec, name)
            plain[name] = value if type(value) in _LEAVES else to_plain(value)
        return plain
    if isinstance(spec, list | tuple):
        return [item if type(item) in _LEAVES else to_plain(item) for item in spec]
    return spec


@cache
def _field_names(cls: type) -> tuple[str, ...] | None:
    """The fields of a dataclass, None for another type; pservers with backups convert many."""
    if not dataclasses.is_dataclass(cls):
        return None
    return tuple(field.name for field in dataclasses.fields(cls))


def from_plain(plain: Any, levels: int = 32) -> Any:
    """Invert `to_plain`; lists become tuples.

    Raises `ConfigError` for an unknown kind or field and for more than `levels` levels of nesting,
    because the input may come from a stranger.
    """
    if not isinstance(plain, dict | list):
        return plain
    if levels == 0:
        raise ConfigError("spec is nested deeper than any that psrt has")
    if isinstance(plain, list):
        return tuple(from_plain(item, levels - 1) for item in plain)
    kind = plain.get("kind")
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        named = repr(kind) if isinstance(kind, str) else f"of type {type(kind).__name__}"
        raise ConfigError(f"spec of unknown kind {named}")
    fields = {
        name: from_plain(value, levels - 1) for name, value in plain.items() if name != "kind"
    }
    try:
        return cls(**fields)
    except TypeError as error:
        raise ConfigError(f"spec {cls.__name__}: {error}") from error


def to_json(spec: Any) -> str:
    """Return the canonical text: sorted keys, no blanks; equal specs give equal text."""
    return json.dumps(to_plain(spec), sort_keys=True, separators=(",", ":"))


def from_json(text: str) -> Any:
    """Invert `to_json`; raises `ConfigError` for a text that is not a spec."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"spec is not JSON: {error}") from error
    return from_plain(plain)


def differences(ours: Any, theirs: Any) -> str:
    """Return the fields in which two specs differ, `name: ours != theirs`, for messages."""
    if type(ours) is not type(theirs):
        return f"kind: {type(ours).__name__} != {type(theirs).__name__}"
    pairs = (
        (f.name, getattr(ours, f.name), getattr(theirs, f.name)) for f in dataclasses.fields(ours)
    )
    return "; ".join(f"{name}: {a!r} != {b!r}" for name, a, b in pairs if a != b)
