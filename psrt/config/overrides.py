"""Settings of this process that override its environment: by `psrt.init` and by flags.

They are kept by variable, as if they had been exported, so that readers of `load.environment` get
them. They override exported variables of newer and older names; flags override `psrt.init`.
Settings that `psrt.init` leaves open have defaults, which the environment overrides. Pure
decisions: the caller passes the exported variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from psrt.config.older_variables import V2_PORT, Environment, implied, origins, with_derived

INIT = "psrt.init"


@dataclass(frozen=True)
class GivenValue:
    """A value as text, and its origin: a flag, `psrt.init`, or variables."""

    text: str
    origin: str


@dataclass(frozen=True)
class Variables:
    """Values by variable; `over` overrides `exported`."""

    over: Mapping[str, GivenValue]
    exported: Mapping[str, GivenValue]

    def first(self, names: Iterable[str]) -> GivenValue | None:
        """Return the value of highest precedence among these variables, None if none is set."""
        names = list(names)
        values = (layer.get(name) for layer in (self.over, self.exported) for name in names)
        return next(filter(None, values), None)


@dataclass
class ProcessOverrides:
    """Overrides: `flags`, and `arguments` of `psrt.init` (None before its call), by variable."""

    flags: Mapping[str, GivenValue] = field(default_factory=dict)
    arguments: Mapping[str, str] | None = None

    def over(self, exported: Environment) -> dict[str, GivenValue]:
        """Values that override `exported`; older names may need parts of `exported` as well."""
        decided = implied(self.arguments or {}, exported)
        return {name: GivenValue(text, INIT) for name, text in decided.items()} | dict(self.flags)

    def defaults(self, known: Environment) -> dict[str, str]:
        """Defaults that `psrt.init` adds to `known`: one trainer, a pserver on this host."""
        if self.arguments is None:
            return {}
        port = known.get("PADDLE_INIT_PORT") or V2_PORT
        lowest = {
            "TRAINING_ROLE": "TRAINER",
            "PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{port}",
            "PADDLE_TRAINERS_NUM": "1",
            "PADDLE_TRAINER_ID": "0",
        }
        given = with_derived(known)
        return {name: text for name, text in lowest.items() if name not in given}

    def environment(self, exported: Environment) -> dict[str, str]:
        """Return `exported` with the overrides and defaults of this process."""
        known = dict(exported) | {name: value.text for name, value in self.over(exported).items()}
        return known | self.defaults(known)

    def variables(self, exported: Environment) -> Variables:
        over = self.over(exported)
        known = dict(exported) | {name: value.text for name, value in over.items()}
        lowest = {name: GivenValue(text, INIT) for name, text in self.defaults(known).items()}
        return Variables(over, with_origins(known) | lowest)


def with_origins(environ: Environment) -> dict[str, GivenValue]:
    """Values of an environment by name; older variables also count by their newer names."""
    origin = origins(environ)
    return {name: GivenValue(text, origin[name]) for name, text in with_derived(environ).items()}


OVERRIDES = ProcessOverrides()
"""The overrides of this process."""
