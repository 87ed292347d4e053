"""What older variables say in the newer names, and which ones said it.

Launchers and scripts of three generations of PaddlePaddle name the same facts differently. `RULES`
has a line for each older name: everything else in psrt knows the newest alone. Where several say
the same fact, the newest that is set wins, then the first rule. Pure functions of a mapping; an
empty variable counts as unset. `PADDLE_INIT_USE_GPU` is refused where it asks for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from psrt.config.settings import Setting
from psrt.core.errors import ConfigError

DEFAULT_PORT, V2_PORT = 6170, 7164
"""Where a pserver listens: in PaddlePaddle's later scripts and psrt, and in its v2."""

Environment = Mapping[str, str]


@dataclass(frozen=True)
class DerivedSetting:
    """`name` is `value` of an environment, if the first of `sources`, which it reads, is set.

    A guess follows from the sources without being said by them.
    """

    name: str
    sources: tuple[str, ...]
    value: Callable[[Environment], str]
    is_guess: bool = False

    def of(self, environ: Environment) -> str:
        return self.value(environ) if environ.get(self.sources[0]) else ""

    def said_by(self, environ: Environment) -> str:
        """The sources that are set: `PADDLE_INIT_PSERVERS and PADDLE_INIT_PORT`."""
        return " and ".join(name for name in self.sources if environ.get(name))


def with_derived(environ: Environment) -> dict[str, str]:
    """What is set in `environ`, and what its older variables mean; a newer one that is set wins."""
    refuse_gpu(environ.get("PADDLE_INIT_USE_GPU", ""), "PADDLE_INIT_USE_GPU")
    known = {name: value for name, value in environ.items() if value}
    for rule in RULES:
        if rule.name not in known and (value := rule.of(environ)):
            known[rule.name] = value
    return known


def origins(environ: Environment) -> dict[str, str]:
    """By each variable of `with_derived`, the variables of `environ` that said it."""
    found = {name: name for name, value in environ.items() if value}
    for rule in RULES:
        if rule.name not in found and rule.of(environ):
            found[rule.name] = rule.said_by(environ)
    return found


def implied(given: Environment, environ: Environment) -> dict[str, str]:
    """`given`, and every newer variable it decides, the rest of what that needs from `environ`.

    Guesses are not decided: they must not count over what is said elsewhere.
    """
    known = {**environ, **given}
    decided = dict(given)
    for rule in RULES:
        decides = not rule.is_guess and any(name in given for name in rule.sources)
        if decides and rule.name not in decided:
            decided[rule.name] = rule.of(known)
    return {name: value for name, value in decided.items() if value}


def endpoints_on(hosts: Sequence[str], port: int) -> tuple[str, ...]:
    """An endpoint per host at `port`; a host that is named again takes the next port."""
    return tuple(f"{host}:{port + hosts[:i].count(host)}" for i, host in enumerate(hosts))


def listed(text: str) -> tuple[str, ...]:
    """The parts of a text with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def port_of(environ: Environment, name: str, default: int = DEFAULT_PORT) -> int:
    """The port a variable holds, or `default`; raises `ConfigError` for anything but a number."""
    text = environ.get(name) or str(default)
    if not text.isdecimal():
        raise ConfigError(
            f"{name} is {text!r}, expected a number.", hint="It is the port of the pservers."
        )
    return int(text)


def refuse_gpu(asked: str, origin: str) -> None:
    """Raise `ConfigError` where a text stands for true."""
    setting = Setting("init", "use_gpu", bool, False, "psrt computes on CPUs: leave it out.")
    if asked and setting.parse(asked, origin):
        raise ConfigError(
            f"{origin} asks for a GPU, but psrt computes on CPUs.",
            hint="Leave it out. More CPUs of a host: replicas of the program, CPU_NUM or "
            "trainer_count; more hosts: more trainers.",
        )


def _same(name: str) -> Callable[[Environment], str]:
    return lambda environ: environ[name]


def _number_of(environ: Environment) -> str:
    """PADDLE_TRAINERS is a number in some scripts and a list of addresses in others."""
    trainers = environ["PADDLE_TRAINERS"]
    return trainers if trainers.isdecimal() else str(len(listed(trainers)))


def _endpoints_of_hosts(environ: Environment) -> str:
    hosts = listed(environ["PADDLE_PSERVER_IPS"])
    return ",".join(endpoints_on(hosts, port_of(environ, "PADDLE_PSERVER_PORT")))


def _endpoints_of_v2(environ: Environment) -> str:
    """A list of hosts, to which the one port is added where they have none."""
    named = listed(environ["PADDLE_INIT_PSERVERS"])
    bare = iter(
        endpoints_on(
            [host for host in named if ":" not in host],
            port_of(environ, "PADDLE_INIT_PORT", V2_PORT),
        )
    )
    return ",".join(host if ":" in host else next(bare) for host in named)


def _part_of_endpoint(part: int) -> Callable[[Environment], str]:
    return lambda environ: environ["PADDLE_CURRENT_ENDPOINT"].rpartition(":")[part]


def _common_port(environ: Environment) -> str:
    return str(port_of(environ, "PADDLE_PSERVER_PORT"))


RULES = (
    DerivedSetting("TRAINING_ROLE", ("PADDLE_TRAINING_ROLE",), _same("PADDLE_TRAINING_ROLE")),
    DerivedSetting(
        "TRAINING_ROLE", ("PADDLE_INIT_PSERVERS",), lambda environ: "TRAINER", is_guess=True
    ),
    DerivedSetting("PADDLE_TRAINERS_NUM", ("PADDLE_NUM_TRAINERS",), _same("PADDLE_NUM_TRAINERS")),
    DerivedSetting("PADDLE_TRAINERS_NUM", ("PADDLE_TRAINERS",), _number_of),
    DerivedSetting(
        "PADDLE_TRAINERS_NUM",
        ("PADDLE_INIT_NUM_GRADIENT_SERVERS",),
        _same("PADDLE_INIT_NUM_GRADIENT_SERVERS"),
    ),
    DerivedSetting(
        "PADDLE_TRAINER_ID", ("PADDLE_INIT_TRAINER_ID",), _same("PADDLE_INIT_TRAINER_ID")
    ),
    DerivedSetting("PADDLE_TRAINER_ID", ("OMPI_COMM_WORLD_RANK",), _same("OMPI_COMM_WORLD_RANK")),
    DerivedSetting("PADDLE_TRAINER_ID", ("SLURM_PROCID",), _same("SLURM_PROCID")),
    DerivedSetting(
        "PADDLE_PSERVERS_IP_PORT_LIST",
        ("PADDLE_PSERVER_IPS", "PADDLE_PSERVER_PORT"),
        _endpoints_of_hosts,
    ),
    DerivedSetting(
        "PADDLE_PSERVERS_IP_PORT_LIST",
        ("PADDLE_INIT_PSERVERS", "PADDLE_INIT_PORT"),
        _endpoints_of_v2,
    ),
    DerivedSetting("POD_IP", ("PADDLE_CURRENT_ENDPOINT",), _part_of_endpoint(0)),
    DerivedSetting("POD_IP", ("PADDLE_CURRENT_IP",), _same("PADDLE_CURRENT_IP")),
    DerivedSetting("PADDLE_PORT", ("PADDLE_CURRENT_ENDPOINT",), _part_of_endpoint(2)),
    DerivedSetting("PADDLE_PORT", ("PADDLE_CURRENT_IP", "PADDLE_PSERVER_PORT"), _common_port),
    DerivedSetting("CPU_NUM", ("PADDLE_INIT_TRAINER_COUNT",), _same("PADDLE_INIT_TRAINER_COUNT")),
)
