"""Parameters of a job and of a source: those that belong together by name or rule, and what fits.

Every pserver computes the matches of all parameters, so that all of them refuse or accept alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from psrt.core.specs import DenseTableSpec, TableSpec, WarmRule, WarmStart
from psrt.kernels.optimizers import rule_of
from psrt.pserver.saved import SavedState, SourceDense, SourceTable

_NO_RULE = WarmRule("")


@dataclass(frozen=True)
class Match:
    """The saved parameter that one of the job begins with.

    `keeps_state`: with the state of its optimizer, too. `reshaped` describes another shape, "" =
    they are equal.
    """

    saved: SourceDense | SourceTable
    keeps_state: bool
    reshaped: str = ""


@dataclass
class Matches:
    """All parameters of a job by name, and what does not match.

    `missing` are parameters that the source lacks, `unused` names of the source that no parameter
    takes, `reshaped` parameters of another shape that no rule allows: all three are reported.
    `misfits` are problems that end the job.
    """

    found: dict[str, Match] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    reshaped: list[str] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)


def matches_of(parameters: Sequence[TableSpec], source: SavedState, warm: WarmStart) -> Matches:
    """Match the whole `parameters` of a job with those of `source`."""
    matches, used, fired = Matches(), set[str](), set[WarmRule]()
    for spec in parameters:
        name = name_of(spec)
        rule = next((rule for rule in warm.rules if _matches(rule, name)), _NO_RULE)
        fired.add(rule)
        if rule.skip:
            matches.skipped.append(name)
            continue
        saved_name = _source_of(rule, name)
        saved = source.dense.get(saved_name) or source.sparse.get(saved_name)
        if saved is None:
            matches.missing.append(name if saved_name == name else f"{name} (from {saved_name})")
            continue
        used.add(saved_name)
        _match(matches, spec, saved, saved_name, rule)
    left = sorted({*source.dense, *source.sparse} - used)
    matches.unused = [n for n in left if not any(re.fullmatch(p, n) for p in warm.unused)]
    for rule in warm.rules:
        if not any(_matches(rule, name_of(spec)) for spec in parameters):
            matches.misfits.append(f"no parameter of the job matches the rule of {rule.parameter}")
        elif rule.source and rule not in fired:
            earlier = f"the rule of {rule.parameter} is never used: earlier rules match first"
            matches.misfits.append(earlier)
    return matches


def name_of(spec: TableSpec) -> str:
    """The name of the parameter that a table or a block belongs to."""
    return spec.parameter if isinstance(spec, DenseTableSpec) else spec.name


def _matches(rule: WarmRule, name: str) -> bool:
    if rule.is_pattern:
        return re.fullmatch(rule.parameter, name) is not None
    return rule.parameter == name


def _source_of(rule: WarmRule, name: str) -> str:
    if not rule.source:
        return name
    found = re.fullmatch(rule.parameter, name) if rule.is_pattern else None
    return found.expand(rule.source) if found is not None else rule.source


def _match(
    matches: Matches,
    spec: TableSpec,
    saved: SourceDense | SourceTable,
    saved_name: str,
    rule: WarmRule,
) -> None:
    name, was = name_of(spec), saved.spec
    if type(was) is not type(spec):
        kinds = _kind(was), _kind(spec)
        matches.misfits.append(f"{name} is {kinds[1]}, but {saved_name} is {kinds[0]}")
        return
    reshaped, is_allowed = _reshaped(was, spec)
    if not is_allowed and not rule.resize:
        matches.misfits.append(f"{name} has another shape than {saved_name}: {reshaped}")
        return
    if reshaped and not rule.resize:
        matches.reshaped.append(f"{name}: {reshaped}")
    state_fits = saved.has_state and not reshaped and _growth(was) == _growth(spec)
    keeps_state = state_fits and was.optimizer == spec.optimizer and rule.state != "new"
    if rule.state == "kept" and not keeps_state:
        if not state_fits or not _states_are_alike(was, spec):
            matches.misfits.append(f"{name} cannot keep {_state_of(saved)} of {saved_name}")
            return
        keeps_state = True
    matches.found[name] = Match(saved, keeps_state, reshaped)


def _reshaped(was: TableSpec, spec: TableSpec) -> tuple[str, bool]:
    """A description of a change of shape, "" for none, and whether it needs no rule."""
    if isinstance(was, DenseTableSpec) and isinstance(spec, DenseTableSpec):
        if was.shape == spec.shape:
            return "", True
        return f"{_product(was.shape)} → {_product(spec.shape)}", False
    assert not isinstance(was, DenseTableSpec)
    assert not isinstance(spec, DenseTableSpec)
    if was.virtual_shards != spec.virtual_shards:
        return f"{was.virtual_shards} → {spec.virtual_shards} virtual shards", False
    if was.width == spec.width:
        return "", True
    return f"{was.width} → {spec.width} columns", was.width < spec.width


def _states_are_alike(was: TableSpec, spec: TableSpec) -> bool:
    """True if the optimizers are of one kind and their states of one size."""
    if type(was.optimizer) is not type(spec.optimizer):
        return False
    rules = rule_of(was.optimizer), rule_of(spec.optimizer)
    return len(rules[0].first_state(8)) == len(rules[1].first_state(8))


def _product(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _growth(spec: TableSpec) -> object:
    return None if isinstance(spec, DenseTableSpec) else spec.growth


def _state_of(saved: SourceDense | SourceTable) -> str:
    return f"the state of {type(saved.spec.optimizer).__name__}" if saved.has_state else "a state"


def _kind(spec: TableSpec) -> str:
    return "dense" if isinstance(spec, DenseTableSpec) else "a sparse table"
