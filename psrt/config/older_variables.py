"""Older environment variables, translated into the newest names.

Launchers and scripts of three generations of PaddlePaddle name the same settings differently.
`RULES` has a line for each older name, so the rest of psrt reads the newest names only. Where
several are set, the newest wins, then the first rule. Pure functions of a mapping; an empty
variable counts as unset. `PADDLE_INIT_USE_GPU` is refused where it asks for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from psrt.config.settings import Setting
from psrt.core.errors import ConfigError

DEFAULT_PORT, V2_PORT = 6170, 7164
"""Port of a pserver: in psrt and PaddlePaddle's later scripts, and in its v2."""

Environment = Mapping[str, str]


@dataclass(frozen=True)
class VariableRule:
    """The variable `name` is `value(environment)` if the first of its `sources` is set.

    Without `value` it is that of this source. With `is_guess`, the sources imply the value without
    stating it.
    """

    name: str
    sources: tuple[str, ...]
    value: Callable[[Environment], str] | None = None
    is_guess: bool = False

    def of(self, environ: Environment) -> str:
        first = environ.get(self.sources[0], "")
        return self.value(environ) if first and self.value is not None else first

    def set_sources(self, environ: Environment) -> str:
        """The sources that are set: `PADDLE_INIT_PSERVERS and PADDLE_INIT_PORT`."""
        return " and ".join(name for name in self.sources if environ.get(name))


def with_derived(environ: Environment) -> dict[str, str]:
    """Return `environ` with newer names for its older variables; a newer one that is set wins."""
    refuse_gpu(environ.get("PADDLE_INIT_USE_GPU", ""), "PADDLE_INIT_USE_GPU")
    known = {name: value for name, value in environ.items() if value}
    for rule in RULES:
        if rule.name not in known and (value := rule.of(environ)):
            known[rule.name] = value
    return known


def origins(environ: Environment) -> dict[str, str]:
    """Map each variable of `with_derived` to the variables of `environ` that set it."""
    found = {name: name for name, value in environ.items() if value}
    for rule in RULES:
        if rule.name not in found and rule.of(environ):
            found[rule.name] = rule.set_sources(environ)
    return found


def implied(given: Environment, environ: Environment) -> dict[str, str]:
    """Return `given` with every newer variable that it decides, together with `environ`.

    Guesses are left out: they must not override a value that is stated elsewhere.
    """
    known = {**environ, **given}
    decided = dict(given)
    for rule in RULES:
        decides = not rule.is_guess and any(name in given for name in rule.sources)
        if decides and rule.name not in decided:
            decided[rule.name] = rule.of(known)
    return {name: value for name, value in decided.items() if value}


def endpoints_on(hosts: Sequence[str], port: int) -> tuple[str, ...]:
    """Return an endpoint per host at `port`; a repeated host takes the next port."""
    return tuple(f"{host}:{port + hosts[:i].count(host)}" for i, host in enumerate(hosts))


def listed(text: str) -> tuple[str, ...]:
    """Split a text at commas, without empty parts."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def port_of(environ: Environment, name: str, default: int = DEFAULT_PORT) -> int:
    """Return the port in a variable, or `default`; raises `ConfigError` unless it is a number."""
    text = environ.get(name) or str(default)
    if not text.isdecimal():
        raise ConfigError(
            f"{name} is {text!r}, expected a number.", hint="It is the port of the pservers."
        )
    return int(text)


def refuse_gpu(asked: str, origin: str) -> None:
    """Raise `ConfigError` for a text that means true."""
    setting = Setting("init", "use_gpu", bool, False, "psrt computes on CPUs: leave it out.")
    if asked and setting.parse(asked, origin):
        raise ConfigError(
            f"{origin} asks for a GPU, but psrt computes on CPUs.",
            hint="Leave it out. More CPUs of a host: replicas of the program, CPU_NUM or "
            "trainer_count; more hosts: more trainers.",
        )


def _number_of(environ: Environment) -> str:
    """PADDLE_TRAINERS is a number in some scripts and a list of addresses in others."""
    trainers = environ["PADDLE_TRAINERS"]
    return trainers if trainers.isdecimal() else str(len(listed(trainers)))


def _endpoints_of_hosts(environ: Environment) -> str:
    hosts = listed(environ["PADDLE_PSERVER_IPS"])
    return ",".join(endpoints_on(hosts, port_of(environ, "PADDLE_PSERVER_PORT")))


def _endpoints_of_v2(environ: Environment) -> str:
    """Return the list of hosts, each with the common port unless it has its own."""
    named = listed(environ["PADDLE_INIT_PSERVERS"])
    bare = iter(
        endpoints_on(
            [host for host in named if ":" not in host],
            port_of(environ, "PADDLE_INIT_PORT", V2_PORT),
        )
    )
    return ",".join(host if ":" in host else next(bare) for host in named)


def _endpoints_of_fleet(environ: Environment) -> str:
    """Return the hosts of Fluid 1.5 and 1.6, each with its port of a list, or the common one."""
    hosts, ports = listed(environ["PADDLE_PSERVERS"]), listed(environ.get("PADDLE_PORT", ""))
    if len(ports) < 2:
        return ",".join(endpoints_on(hosts, port_of(environ, "PADDLE_PORT")))
    hosts = hosts * len(ports) if len(hosts) == 1 else hosts
    if len(hosts) != len(ports):
        raise ConfigError(
            f"PADDLE_PSERVERS has {len(hosts)} hosts, and PADDLE_PORT {len(ports)} ports.",
            hint="Set PADDLE_PORT to one port for all pservers, or to a port for each.",
        )
    return ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))


def _part_of_endpoint(part: int) -> Callable[[Environment], str]:
    return lambda environ: environ["PADDLE_CURRENT_ENDPOINT"].rpartition(":")[part]


def _common_port(environ: Environment) -> str:
    return str(port_of(environ, "PADDLE_PSERVER_PORT"))


RULES = (
    VariableRule("TRAINING_ROLE", ("PADDLE_TRAINING_ROLE",)),
    VariableRule(
        "TRAINING_ROLE", ("PADDLE_INIT_PSERVERS",), lambda environ: "TRAINER", is_guess=True
    ),
    VariableRule("PADDLE_TRAINERS_NUM", ("PADDLE_NUM_TRAINERS",)),
    VariableRule("PADDLE_TRAINERS_NUM", ("PADDLE_TRAINERS",), _number_of),
    VariableRule("PADDLE_TRAINERS_NUM", ("PADDLE_INIT_NUM_GRADIENT_SERVERS",)),
    VariableRule("PADDLE_TRAINER_ID", ("PADDLE_INIT_TRAINER_ID",)),
    VariableRule("PADDLE_TRAINER_ID", ("OMPI_COMM_WORLD_RANK",)),
    VariableRule("PADDLE_TRAINER_ID", ("SLURM_PROCID",)),
    VariableRule(
        "PADDLE_PSERVERS_IP_PORT_LIST",
        ("PADDLE_PSERVER_IPS", "PADDLE_PSERVER_PORT"),
        _endpoints_of_hosts,
    ),
    VariableRule(
        "PADDLE_PSERVERS_IP_PORT_LIST",
        ("PADDLE_INIT_PSERVERS", "PADDLE_INIT_PORT"),
        _endpoints_of_v2,
    ),
    VariableRule(
        "PADDLE_PSERVERS_IP_PORT_LIST", ("PADDLE_PSERVERS", "PADDLE_PORT"), _endpoints_of_fleet
    ),
    VariableRule("POD_IP", ("PADDLE_CURRENT_ENDPOINT",), _part_of_endpoint(0)),
    VariableRule("POD_IP", ("PADDLE_CURRENT_IP",)),
    VariableRule("PADDLE_PORT", ("PADDLE_CURRENT_ENDPOINT",), _part_of_endpoint(2)),
    VariableRule("PADDLE_PORT", ("PADDLE_CURRENT_IP", "PADDLE_PSERVER_PORT"), _common_port),
    VariableRule("CPU_NUM", ("PADDLE_INIT_TRAINER_COUNT",)),
)
