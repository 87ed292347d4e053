"""Differences of two partition plans, for people.

A trainer sends the text of its plan with the hash. If hashes differ, the pserver reports the
settings that do. A text comes from a stranger: one that is not a plan has no differences to report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MAX_TEXT_BYTES = 1 << 18
"""Longer texts are not sent; then the hashes alone are reported."""

_LISTED = 4
_FROM_OTHERS = (
    "name",
    "parameter",
    "offset",
    "size",
    "section",
    "kind",
    "first_shard",
    "last_shard",
)
"""Fields that follow from the placement, which is compared as a whole."""

Specs = dict[str, dict[str, Any]]


def text_of(plan_json: str, seed: int) -> str:
    """Return the text to send of a plan and the seed of its program; "" if it is too long."""
    text = f'{{"seed":{seed},"plan":{plan_json}}}'
    return text if len(text) <= MAX_TEXT_BYTES else ""


def plan_differences(theirs: str, ours: str) -> str:
    """Return what differs, `a is x at the trainer and y at this pserver; …`; "" if unknown."""
    try:
        found = list(_differences(json.loads(theirs), json.loads(ours)))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return ""
    more = f"; {len(found) - _LISTED} more differ" if len(found) > _LISTED else ""
    return "; ".join(found[:_LISTED]) + more


def _differences(theirs: Any, ours: Any) -> Iterator[str]:
    a, b = theirs["plan"], ours["plan"]
    if theirs["seed"] != ours["seed"]:
        yield _both("the seed ([job] seed, or psrt.program)", theirs["seed"], ours["seed"])
    if a["endpoints"] != b["endpoints"]:
        yield _both("endpoints", ",".join(a["endpoints"]), ",".join(b["endpoints"]))
    specs = _specs(a), _specs(b)
    yield from _only_one_has(*specs)
    yield from _fields(*specs, skip_seeds=theirs["seed"] != ours["seed"])
    if a["endpoints"] == b["endpoints"] and not _shapes_differ(*specs):
        yield from _placement(a, b)
    if a.get("adds_for") != b.get("adds_for"):
        yield "the optimizers that trainers run in geo differ, or their rates"
    if a.get("warm_start") != b.get("warm_start"):
        yield _both("warm_start", a.get("warm_start", "none"), b.get("warm_start", "none"))


def _specs(plan: Any) -> Specs:
    """The declaration of each parameter, by name."""
    dense = {spec["parameter"]: spec for _, spec in plan["blocks"]}
    return dense | {spec["name"]: spec for spec in plan["sparse"]}


def _only_one_has(theirs: Specs, ours: Specs) -> Iterator[str]:
    for name in sorted(theirs.keys() ^ ours.keys()):
        yield f"only {'the trainer' if name in theirs else 'this pserver'} has parameter {name}"


def _fields(theirs: Specs, ours: Specs, skip_seeds: bool) -> Iterator[str]:
    """One text for each field that differs, with the first parameter and the number of others."""
    shared = sorted(theirs.keys() & ours.keys())
    fields = {field: None for name in shared for field in (*theirs[name], *ours[name])}
    for field in fields:
        if field in _FROM_OTHERS or (field == "seed" and skip_seeds):
            continue
        differ = [name for name in shared if theirs[name].get(field) != ours[name].get(field)]
        if differ:
            first, others = differ[0], len(differ) - 1
            what = f"{field} of {first}" + (f" and {others} others" if others else "")
            yield _both(what, _shown(theirs[first].get(field)), _shown(ours[first].get(field)))


def _shapes_differ(theirs: Specs, ours: Specs) -> bool:
    shapes = ({name: spec.get("shape") for name, spec in specs.items()} for specs in (theirs, ours))
    return next(shapes) != next(shapes)


def _placement(theirs: Any, ours: Any) -> Iterator[str]:
    """Compare where blocks begin and live."""
    a, b = (
        {(spec["parameter"], spec["offset"]): at for at, spec in plan["blocks"]}
        for plan in (theirs, ours)
    )
    moved = [block for block in a.keys() | b.keys() if a.get(block) != b.get(block)]
    if moved:
        name, _ = min(moved)
        what = f"the placement of {name} (settings of [partition])"
        yield _both(what, *(_places(blocks, name) for blocks in (a, b)))


def _places(blocks: dict[tuple[str, int], str], name: str) -> str:
    at = [endpoint for (each, _), endpoint in sorted(blocks.items()) if each == name]
    return f"{len(at)} block{'s' if len(at) > 1 else ''} on {', '.join(at)}"


def _both(what: str, at_trainer: Any, here: Any) -> str:
    return f"{what} is {at_trainer} at the trainer and {here} at this pserver"


def _shown(value: Any) -> str:
    """A field as people write it: `0.1` for a constant rate, `Adagrad(epsilon=1e-06)`."""
    if not isinstance(value, dict):
        return json.dumps(value)
    rest = {name: part for name, part in value.items() if name != "kind"}
    if value.get("kind") == "ConstantRate":
        return _shown(rest.get("rate"))
    return f"{value.get('kind')}({', '.join(f'{n}={_shown(v)}' for n, v in rest.items())})"
