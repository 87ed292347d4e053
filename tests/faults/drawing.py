"""A round as data: the cluster, its job and its faults, all drawn from one seed."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, replace

from psrt.core import failpoints
from tests.faults.ledger_job import LARGE, MODES, SMALL
from tests.faults.proxy import LinkFault

CARRIERS = ("tcp", "unix", "grpc")
WAIT_S = 8.0
"""`wait_timeout_s` of the pservers."""

SURVIVED_S = 3.5
"""A job survives delays that together are shorter: some time stays for a busy host."""

MOST_MOVED_S = 30 * 3600
"""The most by which a wall clock is moved, in either direction."""

KILLING_POINTS = [p for p in failpoints.POINTS if not p.startswith(("restore", "delta"))]


class Fault(enum.Enum):
    """A fault that strikes at a step; the value describes it in a report."""

    KILL_TRAINER = "is killed"
    PAUSE = "stops for a while"
    PARTITION = "cannot be reached for a while"
    KILL_PSERVER = "is killed for good"
    REPLACE_PSERVER = "is killed and started again with --recover"
    KILL_PAIR = "is killed with the trainer, and started again with --recover"
    KILL_ALL = "and all others are killed"
    DISK_FULL = "the disk of the cuts is full for a while"
    READ_ONLY = "the disk of the cuts is read-only for a while"
    ASK = "is asked for a cut"
    CLOCK = "finds its wall clock moved"


@dataclass(frozen=True)
class Strike:
    """One fault of the process or disk `name`, once trainer `trainer` has sent step `step`.

    A wall clock moves to `by_s` seconds ahead of the others.
    """

    fault: Fault
    name: str
    trainer: int
    step: int
    for_s: float = 0.0
    by_s: int = 0

    def __str__(self) -> str:
        after = f" ({self.for_s:.1f} s)" if self.for_s else ""
        after += f" ({self.by_s:+d} s)" if self.fault is Fault.CLOCK else ""
        where = f"trainer {self.trainer} sends step {self.step}"
        return f"{self.name} {self.fault.value}{after} when {where}"


ENDING = (Fault.KILL_PSERVER, Fault.KILL_ALL)
DELAYS = (Fault.PAUSE, Fault.PARTITION)
REPLACING = (Fault.REPLACE_PSERVER, Fault.KILL_PAIR)


@dataclass(frozen=True)
class FaultRound:
    """Cluster, job and faults of one round.

    `pservers` are the numbers of pservers of each attempt: a job that did not complete goes on with
    its latest cut, or begins anew. `failpoints` are texts by pserver, of the first attempt, and
    `restore` is that of the second. A keeper starts each trainer again up to `restarts` times.
    `late` is a trainer that joins resumed attempts so many seconds behind the others.
    With `moves_clocks` callers prove tokens, which end by the wall clock of a pserver. With
    `has_hosts` each process is in a network of its own, and partitions drop packets.
    """

    seed: int
    mode: str
    carrier: str
    pservers: tuple[int, ...]
    trainers: int
    steps: int
    pace_s: float
    elements: int
    cut_every: int
    restarts: int
    strikes: tuple[Strike, ...] = ()
    links: tuple[tuple[int, LinkFault], ...] = ()
    failpoints: tuple[tuple[int, str], ...] = ()
    restore: str = ""
    moves_clocks: bool = False
    has_hosts: bool = False
    late: tuple[int, float] | None = None

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.mode} over {self.carrier}, {self.trainers} trainers of "
            f"{self.steps} steps, pservers {', then '.join(map(str, self.pservers))}, "
            f"a cut every {self.cut_every}, {self.restarts} restarts"
        ]
        lines += [f"  pserver {number}: {fault}" for number, fault in self.links]
        lines += [f"  pserver {number}: PSRT_FAILPOINT={text}" for number, text in self.failpoints]
        lines += [f"  second attempt: PSRT_FAILPOINT={self.restore}"] if self.restore else []
        if self.late is not None:
            lines.append("  trainer {} joins a resumed job {:.1f} s late".format(*self.late))
        return "\n".join([*lines, *(f"  {strike}" for strike in self.strikes)])

    def processes(self, attempt: int) -> list[str]:
        """The names of the processes of an attempt."""
        trainers = [f"trainer {number}" for number in range(self.trainers)]
        return [*trainers, *(f"pserver {number}" for number in range(self.pservers[attempt]))]

    @property
    def makes_cuts(self) -> bool:
        return self.cut_every > 0

    @property
    def ends_a_pserver(self) -> bool:
        """True if a pserver may be killed without being replaced."""
        kills = any(text.partition("=")[2].startswith("kill") for _, text in self.failpoints)
        return kills or any(strike.fault in ENDING for strike in self.strikes)

    @property
    def replaces_pservers(self) -> bool:
        """True if a killed pserver is started again while its job goes on."""
        return any(strike.fault in REPLACING for strike in self.strikes)

    @property
    def is_gentle(self) -> bool:
        """True if the first attempt survives every fault: all its trainers must complete.

        A pserver that goes on from a cut refuses the successor of a trainer whose pushes it lacks.
        """
        killed = [s.name for s in self.strikes if s.fault is Fault.KILL_TRAINER]
        killed += [f"trainer {s.trainer}" for s in self.strikes if s.fault is Fault.KILL_PAIR]
        return (
            not self.ends_a_pserver
            and not any(fault.swallows for _, fault in self.links)
            and all(killed.count(name) <= self.restarts for name in killed)
            and not (killed and (self.mode == "sync-abort" or self.replaces_pservers))
            and self.delay_s < SURVIVED_S
        )

    @property
    def delay_s(self) -> float:
        """The time that all faults together may keep one wait.

        TCP tries again later and later, up to twice the time that packets are dropped.
        """
        stops = sum("=stop" in text for _, text in self.failpoints)
        factors = {Fault.PAUSE: 1, Fault.PARTITION: 2 if self.has_hosts else 1}
        return stops + sum(s.for_s * factors.get(s.fault, 0) for s in self.strikes)


def drawn(
    seed: int,
    mode: str | None = None,
    carrier: str | None = None,
    pservers_die: bool = False,
    disks: bool = True,
) -> FaultRound:
    """The round of a seed, a function of the arguments.

    With `pservers_die` pservers are also killed and recovered while the job goes on. Without
    `disks` the disk of the cuts has no faults: they need the right to mount.
    """
    draw = random.Random(f"round {seed} {mode} {carrier} {pservers_die} {disks}")
    mode, carrier = mode or draw.choice(list(MODES)), carrier or draw.choice(CARRIERS)
    trainers, pservers, steps = draw.randint(1, 3), draw.randint(1, 3), draw.randint(20, 50)
    cut_every = draw.choice([0, 8, 15, 15])
    kinds = _kinds(draw, bool(cut_every), pservers_die, disks)
    strikes = tuple(_strike(draw, kind, trainers, pservers, steps) for kind in kinds)
    points = _failpoints(draw, pservers, bool(cut_every))
    fails = any(strike.fault in ENDING for strike in strikes) or "kill" in str(points)
    return FaultRound(
        seed,
        mode,
        carrier,
        (pservers, draw.randint(1, 3), draw.randint(1, 3)),
        trainers,
        steps,
        pace_s=draw.choice([0.0, 0.005, 0.02]),
        elements=draw.choice([SMALL, LARGE]),
        cut_every=cut_every,
        restarts=draw.choice([0, 1, 2]),
        strikes=strikes,
        links=_links(draw, pservers),
        failpoints=points,
        restore="restore.table=kill@2" if fails and draw.random() < 0.2 else "",
    )


def with_late_trainer(round: FaultRound) -> FaultRound:
    """The round, or every other time one in which a trainer joins resumed attempts late."""
    draw = random.Random(f"late {round.seed}")
    if round.trainers == 1 or draw.random() < 0.5:
        return round
    return replace(round, late=(draw.randrange(round.trainers), int(draw.uniform(3, 20)) / 10))


def with_clocks(round: FaultRound) -> FaultRound:
    """The round with jumps of wall clocks, forward and back by hours, besides its other faults."""
    draw = random.Random(f"clocks {round.seed}")
    names = round.processes(0)
    jumps = tuple(
        Strike(
            Fault.CLOCK,
            draw.choice(names),
            draw.randrange(round.trainers),
            draw.randrange(round.steps),
            by_s=draw.choice([-1, 1]) * draw.randint(60, MOST_MOVED_S),
        )
        for _ in range(draw.randint(2, 6))
    )
    return replace(round, strikes=(*round.strikes, *jumps), moves_clocks=True)


def with_hosts(round: FaultRound) -> FaultRound:
    """The round on hosts of its own, with partitions of any of them besides its other faults."""
    draw = random.Random(f"hosts {round.seed}")
    names = round.processes(0)
    partitions = tuple(
        Strike(
            Fault.PARTITION,
            draw.choice(names),
            draw.randrange(round.trainers),
            draw.randrange(round.steps),
            int(draw.uniform(2, 12)) / 10,
        )
        for _ in range(draw.choice([1, 1, 2]))
    )
    carrier = "tcp" if round.carrier == "unix" else round.carrier
    return replace(round, carrier=carrier, strikes=(*round.strikes, *partitions), has_hosts=True)


def _kinds(draw: random.Random, makes_cuts: bool, pservers_die: bool, disks: bool) -> list[Fault]:
    kinds = [Fault.KILL_TRAINER, Fault.PAUSE, Fault.PAUSE, Fault.PARTITION]
    kinds += [Fault.KILL_ALL, Fault.ASK, Fault.ASK] if makes_cuts else []
    kinds += [Fault.DISK_FULL, Fault.READ_ONLY] if makes_cuts and disks else []
    replaced = [Fault.REPLACE_PSERVER] * 3 + [Fault.KILL_PAIR] * 2
    kinds += replaced if makes_cuts and pservers_die else [Fault.KILL_PSERVER]
    return [draw.choice(kinds) for _ in range(draw.choice([0, 1, 2, 3]))]


def _strike(draw: random.Random, kind: Fault, trainers: int, pservers: int, steps: int) -> Strike:
    of_trainer = kind is Fault.KILL_TRAINER or (kind is Fault.PAUSE and draw.random() < 0.5)
    name = f"trainer {draw.randrange(trainers)}" if of_trainer else "pserver 0"
    if not of_trainer and kind is not Fault.ASK:
        name = f"pserver {draw.randrange(pservers)}"
    lasts = kind in (*DELAYS, Fault.DISK_FULL, Fault.READ_ONLY)
    long = 2 * WAIT_S if draw.random() < 0.1 else 1.6
    for_s = round(draw.uniform(0.2, long), 1) if lasts else 0.0
    return Strike(kind, name, draw.randrange(trainers), draw.randrange(steps), for_s)


def _links(draw: random.Random, pservers: int) -> tuple[tuple[int, LinkFault], ...]:
    """None, some, or a storm of them: replies of pushes are lost by chance only."""
    swallows = draw.random() < 0.25
    count = draw.choice([0, 0, 1, 3, 12])
    return tuple(
        (
            draw.randrange(pservers),
            LinkFault(
                draw.choice(["up", "down"]),
                int(10 ** draw.uniform(1, 5) if count < 12 else draw.uniform(500, 30_000)),
                swallows and draw.random() < 0.5 and count < 12,
            ),
        )
        for _ in range(count)
    )


def _failpoints(
    draw: random.Random, pservers: int, makes_cuts: bool
) -> tuple[tuple[int, str], ...]:
    if draw.random() < 0.6:
        return ()
    of_cuts = [point for point in KILLING_POINTS if point.startswith(("cut", "file"))]
    point = draw.choice(KILLING_POINTS if makes_cuts else ["push.before_apply", "push.after_apply"])
    count = draw.randint(1, 3 if point in of_cuts else 40)
    actions = ["kill", "kill", "stop", *(["fail"] * 2 if point in of_cuts else [])]
    number = 0 if "manifest" in point else draw.randrange(pservers)
    return ((number, f"{point}={draw.choice(actions)}@{count}"),)
