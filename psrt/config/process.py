"""What this process was told besides its environment: by `psrt.init`, and by a command's flags.

Kept by variable, as if it had been exported, so that whoever reads the environment through
`load.environment` sees it. It counts over what was exported, by newer and older names alike; flags
count over `psrt.init`. What `psrt.init` leaves open has defaults, which count under the
environment.
Deciding only: the caller brings the exported variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from psrt.config.derived import V2_PORT, Environment, implied, origins, with_derived

INIT = "psrt.init"


@dataclass(frozen=True)
class Said:
    """A value as text, and who gave it: a flag, `psrt.init`, or variables."""

    text: str
    origin: str


@dataclass(frozen=True)
class Heard:
    """What each variable says; `over` is what counts over all of `exported`."""

    over: Mapping[str, Said]
    exported: Mapping[str, Said]

    def first(self, names: Iterable[str]) -> Said | None:
        """The strongest word on a setting that these variables may set, None if none does."""
        names = list(names)
        said = (layer.get(name) for layer in (self.over, self.exported) for name in names)
        return next(filter(None, said), None)


@dataclass
class Told:
    """`flags` by variable; `arguments` of `psrt.init` by variable, None before it was called."""

    flags: Mapping[str, Said] = field(default_factory=dict)
    arguments: Mapping[str, str] | None = None

    def over(self, exported: Environment) -> dict[str, Said]:
        """What counts over `exported`, from which older names take what they need besides."""
        decided = implied(self.arguments or {}, exported)
        return {name: Said(text, INIT) for name, text in decided.items()} | dict(self.flags)

    def defaults(self, known: Environment) -> dict[str, str]:
        """What `psrt.init` adds where nobody said anything: one trainer, a pserver on this host."""
        if self.arguments is None:
            return {}
        port = known.get("PADDLE_INIT_PORT") or V2_PORT
        lowest = {
            "TRAINING_ROLE": "TRAINER",
            "PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{port}",
            "PADDLE_TRAINERS_NUM": "1",
            "PADDLE_TRAINER_ID": "0",
        }
        said = with_derived(known)
        return {name: text for name, text in lowest.items() if name not in said}

    def environment(self, exported: Environment) -> dict[str, str]:
        """`exported` with what this process was told."""
        known = dict(exported) | {name: said.text for name, said in self.over(exported).items()}
        return known | self.defaults(known)

    def heard(self, exported: Environment) -> Heard:
        over = self.over(exported)
        known = dict(exported) | {name: said.text for name, said in over.items()}
        lowest = {name: Said(text, INIT) for name, text in self.defaults(known).items()}
        return Heard(over, variables(known) | lowest)


def variables(environ: Environment) -> dict[str, Said]:
    """What an environment says by each name, older ones under the newer too."""
    origin = origins(environ)
    return {name: Said(text, origin[name]) for name, text in with_derived(environ).items()}


TOLD = Told()
"""This process's own."""
