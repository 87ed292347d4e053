"""Text for people about the matches of a warm start, and the errors of those that do not fit."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.specs import WarmStart
from psrt.pserver.saved import SavedState
from psrt.pserver.warm.matching import Matches

_SHOWN = 12
_HINT = (
    "Give rules with --warm-start-map: from renames, skip begins anew, resize allows another "
    "shape, unused names what is not wanted."
)


def check(matches: Matches, source: SavedState, warm: WarmStart) -> None:
    """Raise `ConfigError` WARM_START_MISFIT naming all parameters that do not fit, in a strict
    warm start also those that do not match."""
    problems = list(matches.misfits)
    if warm.strict:
        problems += _unmatched(matches, len(matches.missing) + len(matches.unused))
    elif not matches.found and not problems:
        problems = ["no parameter of the job is in it", *_unmatched(matches, _SHOWN)]
    if problems:
        raise ConfigError(
            f"the job cannot begin with {source.label}: {'; '.join(problems)}. "
            "Nothing was trained.",
            code=ErrorCode.WARM_START_MISFIT,
            hint=_HINT,
        )


def text_of(matches: Matches, source: SavedState) -> str:
    """The lines that a trainer prints before training begins."""
    kept = sum(match.keeps_state for match in matches.found.values())
    total = len(matches.found) + len(matches.skipped) + len(matches.missing)
    head = f"begins with {source.label}: {len(matches.found)} of {total} parameters"
    lines = [f"{head}, {kept} with optimizer state"]
    skipped = [f"begins anew by a rule: {_names(matches.skipped, _SHOWN)}"]
    lines += skipped if matches.skipped else []
    return "\n  ".join([*lines, *_unmatched(matches, _SHOWN)])


def _unmatched(matches: Matches, shown: int) -> list[str]:
    kinds = {
        "missing in the source": matches.missing,
        "not used": matches.unused,
        "reshaped": matches.reshaped,
    }
    return [f"{kind}: {_names(names, shown)}" for kind, names in kinds.items() if names]


def _names(names: Sequence[str], shown: int) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
