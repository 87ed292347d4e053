"""A cluster, its faults and its seed, as data: all that one history depends on."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, replace

from psrt.core import specs
from tests.sim.network import LATE_S, LinkFault

MODES: dict[str, specs.CommunicationMode] = {
    "sync": specs.Sync(on_trainer_loss="wait"),
    "sync-shrink": specs.Sync(on_trainer_loss="shrink"),
    "sync-abort": specs.Sync(on_trainer_loss="abort"),
    "async": specs.Async(send_wait_times=0),
    "async-merging": specs.Async(max_merge_var_num=3, send_queue_size=3, thread_pool_size=2),
    "async-pool": specs.Async(send_queue_size=4, send_wait_times=0, thread_pool_size=3),
    "half-async": specs.HalfAsync(),
    "ssp": specs.Ssp(max_steps_ahead=1),
    "geo": specs.Geo(update_frequency=1),
    "geo-rarely": specs.Geo(update_frequency=3),
}
MORE_MODES: dict[str, specs.CommunicationMode] = {
    "async-wait": specs.Async(send_wait_times=0, on_trainer_loss="wait"),
    "async-abort": specs.Async(send_queue_size=4, on_trainer_loss="abort"),
    "half-async-abort": specs.HalfAsync(on_trainer_loss="abort"),
    "ssp-wait": specs.Ssp(max_steps_ahead=1, on_trainer_loss="wait"),
    "geo-wait": specs.Geo(update_frequency=2, on_trainer_loss="wait"),
}
"""Further policies for lost trainers: `shrink` is the default of all but Sync. A seed without a
mode draws none of these."""
ALL_MODES = {**MODES, **MORE_MODES}
PAIRED_MODES = [mode for mode in MODES if not mode.startswith("geo")]
"""Modes in which pservers may have backups, and the number of trainers may change."""
ALL_PAIRED_MODES = [mode for mode in ALL_MODES if not mode.startswith("geo")]
CARRIERS = ("stream-tcp", "stream-unix")
LONGEST_DELAY_S = 9.0
"""A job survives delays that end before a pserver's longest wait."""
EARLY_S = 0.06
"""The first cut of a durable job takes about so long."""
MORE_STEPS = 6
"""Further steps of each trainer in a history with several cuts."""
MOST_FRAMES = 120
"""About the number of frames of a short history; later numbers strike nothing."""


class ProcessFault(enum.Enum):
    """A failure of a process; the value describes it in a history."""

    KILL = "is killed"
    PAUSE = "stops for a while"
    INTERRUPT = "is asked to end"


@dataclass(frozen=True)
class Strike:
    """One fault of a process: of `name`, after `at_s` seconds; restarts and pauses last `for_s`.

    A killed process with `for_s` = 0 stays dead.
    """

    at_s: float
    fault: ProcessFault
    name: str
    for_s: float

    def __str__(self) -> str:
        after = f", {self.for_s:.1f} s" if self.for_s else ""
        return f"{self.at_s:.3f} s: {self.name} {self.fault.value}{after}"


@dataclass(frozen=True)
class Scenario:
    """`steps[trainer]` steps of each trainer; `links` are (number of the frame, its fault).

    A keeper starts a trainer that failed again, up to `restarts` times. Somebody asks for a cut at
    each of `cuts_s`, `cuts_in_a_row` times. `failing_syncs` are the syncs of the disk that fail.
    In a durable job pservers recover from cuts. `ends_with_cut`: one is made at the end of the job.
    With deltas, local cuts are due every `delta_every_s`.
    """

    seed: int
    mode: str
    carrier: str
    steps: tuple[int, ...]
    joins_s: tuple[float, ...]
    links: tuple[tuple[int, LinkFault], ...] = ()
    strikes: tuple[Strike, ...] = ()
    restarts: int = 0
    cuts_s: tuple[float, ...] = ()
    is_durable: bool = False
    has_deltas: bool = False
    has_backups: bool = False
    cuts_in_a_row: int = 1
    failing_syncs: tuple[int, ...] = ()
    ends_with_cut: bool = False
    delta_every_s: float = 0.1

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.mode} over {self.carrier}, steps {list(self.steps)}, "
            f"trainers join after {', '.join(f'{s:.2f}' for s in self.joins_s)} s, "
            f"{'durable, ' * self.is_durable}{self._deltas()}"
            f"{'with backups, ' * self.has_backups}"
            f"{self.restarts} restarts, "
            f"cuts after {', '.join(f'{s:.3f}' for s in self.cuts_s)} s "
            f"× {self.cuts_in_a_row}, failing syncs {list(self.failing_syncs)}, "
            f"{'one' if self.ends_with_cut else 'none'} at the end"
        ]
        lines += [f"  frame {number} {fault.value}" for number, fault in self.links]
        return "\n".join([*lines, *(f"  {strike}" for strike in self.strikes)])

    def _deltas(self) -> str:
        return f"with deltas every {self.delta_every_s:g} s, " if self.has_deltas else ""

    @property
    def durability(self) -> str:
        """The setting of the job, empty = none."""
        if not self.is_durable:
            return ""
        return "replica" if self.has_backups else "delta" if self.has_deltas else "cut"

    @property
    def is_gentle(self) -> bool:
        """True if a job survives every fault: all trainers must complete."""
        survived = {LinkFault.DOUBLE, LinkFault.CUT, LinkFault.LATE}
        return (
            all(fault in survived for _, fault in self.links)
            and all(
                strike.fault is ProcessFault.PAUSE or self._is_replaced(strike)
                for strike in self.strikes
            )
            and self._delay_s() < LONGEST_DELAY_S
        )

    def _delay_s(self) -> float:
        """The time that all faults together may keep one wait."""
        late = sum(fault is LinkFault.LATE for _, fault in self.links)
        return late * LATE_S + sum(strike.for_s for strike in self.strikes)

    def _is_replaced(self, strike: Strike) -> bool:
        """True for a process whose place a new one takes in time.

        In a durable job it is a pserver: a trainer must live to send its pushes again.
        """
        if self.is_durable:
            return strike.name.startswith("pserver") and strike.for_s > 0
        survives = ALL_MODES[self.mode].on_trainer_loss != "abort"
        return strike.name.startswith("trainer") and strike.for_s > 0 and survives


def drawn(seed: int, mode: str | None = None, pservers_die: bool = True) -> Scenario:
    """The scenario of a seed, a function of the arguments; `mode` None = one of `MODES`."""
    draw = random.Random(f"scenario {seed} {mode} {pservers_die}")
    mode = mode or draw.choice(list(MODES))
    trainers = draw.randint(1, 3)
    kinds = draw.choice([list(LinkFault), [LinkFault.DOUBLE, LinkFault.CUT, LinkFault.LATE]])
    links = {
        draw.randrange(MOST_FRAMES): draw.choice(kinds)
        for _ in range(draw.choice([0, 0, 2, 8, 16]))
    }
    scenario = Scenario(
        seed,
        mode,
        draw.choice(CARRIERS),
        steps=tuple(draw.randint(1, 6) for _ in range(trainers)),
        joins_s=tuple(
            round(draw.choice([0.0, 0.0, draw.uniform(0, 1)]), 3) for _ in range(trainers)
        ),
        links=tuple(sorted(links.items())),
        strikes=tuple(
            _strike(draw, trainers, pservers_die) for _ in range(draw.choice([0, 1, 1, 2]))
        ),
        restarts=draw.choice([0, 0, 1, 2]),
        cuts_s=tuple(round(draw.uniform(0.005, 0.08), 4) for _ in range(draw.choice([0, 1, 2]))),
        ends_with_cut=random.Random(f"end {seed}").random() < 0.5,
    )
    return _with_chains(scenario, draw) if scenario.cuts_s else scenario


def _with_chains(scenario: Scenario, draw: random.Random) -> Scenario:
    """The scenario, or every other time a longer one with several cuts, some of which may fail."""
    if draw.random() < 0.5:
        return scenario
    more = 0 if scenario.mode.startswith("geo") else MORE_STEPS  # `UNIT` is divided in each step
    return replace(
        scenario,
        steps=tuple(count + more for count in scenario.steps),
        cuts_in_a_row=draw.randint(3, 6),
        failing_syncs=tuple(sorted(draw.sample(range(1, 120), draw.choice([0, 2, 4])))),
    )


def durable(seed: int, mode: str | None = None) -> Scenario:
    """A durable job that trains longer, with one or two pservers killed in it, and started again.

    Its other faults are those that `drawn` gives.
    """
    other, draw = drawn(seed, mode), random.Random(f"durable {seed} {mode}")
    is_short = other.mode.startswith("geo")  # `UNIT` is divided in each step
    kills = [
        Strike(
            round(draw.uniform(0.05, 0.6) * (0.2 if is_short else 1), 4),
            ProcessFault.KILL,
            f"pserver {draw.randrange(2)}",
            round(draw.uniform(0.1, 2), 2),
        )
        for _ in range(draw.choice([1, 1, 2]))
    ]
    steps = tuple(draw.randint(5, 40) for _ in other.steps)
    return replace(
        other,
        steps=other.steps if is_short else steps,
        links=other.links if draw.random() < 0.5 else (),
        strikes=(*kills, *(other.strikes if draw.random() < 0.5 else ())),
        cuts_s=tuple(round(draw.uniform(0.05, 0.4), 4) for _ in range(draw.choice([0, 1, 2]))),
        is_durable=True,
    )


def with_deltas(seed: int, mode: str | None = None) -> Scenario:
    """A durable job whose pservers write local cuts, with more kills and disks that fail now and
    then.

    Its other faults are those that `durable` gives.
    """
    other, draw = durable(seed, mode), random.Random(f"deltas {seed} {mode}")
    kills = [
        Strike(
            round(draw.uniform(0.1, 1.5), 4),
            ProcessFault.KILL,
            f"pserver {draw.randrange(2)}",
            round(draw.uniform(0.1, 1), 2),
        )
        for _ in range(draw.choice([0, 1, 2]))
    ]
    failing = draw.choice([0, 0, 3, 6])
    return replace(
        other,
        strikes=(*other.strikes, *kills),
        has_deltas=other.is_durable,
        failing_syncs=tuple(sorted(draw.sample(range(20, 200), failing))),
    )


def early(seed: int, mode: str | None = None) -> Scenario:
    """A durable job whose pservers are killed when it has hardly begun, also both at once, or with
    all trainers.

    They may be killed again later. Its other faults are those that `durable` or `with_deltas` give.
    """
    draw = random.Random(f"early {seed} {mode}")
    other = draw.choice([durable, with_deltas])(seed, mode)
    at_s = round(draw.uniform(0.0, EARLY_S), 4)
    names = draw.choice([["pserver 0"], ["pserver 1"], ["pserver 0", "pserver 1"]])
    kills = [
        Strike(at_s, ProcessFault.KILL, name, round(draw.uniform(0.05, 1.0), 2)) for name in names
    ]
    again = [
        Strike(round(draw.uniform(0.1, 2.0), 4), ProcessFault.KILL, name, 0.3)
        for name in names[: draw.choice([0, 0, 1])]
    ]
    is_geo = other.mode.startswith("geo")  # processes have rows of their own, also lost ones
    if draw.random() < 0.2 and not is_geo:  # the whole job, which begins anew
        trainers = [f"trainer {number}" for number in range(len(other.steps))]
        kills = [
            Strike(at_s, ProcessFault.KILL, name, round(draw.uniform(0.05, 1.0), 2))
            for name in ("pserver 0", "pserver 1", *trainers)
        ]
    return replace(
        other,
        strikes=(*kills, *again, *(other.strikes[-1:] if draw.random() < 0.3 else ())),
        links=other.links if draw.random() < 0.3 else (),
        cuts_s=(),
    )


def with_backups(seed: int, mode: str | None = None) -> Scenario:
    """A job whose pservers have backups: one of them is killed, or stands still for a while.

    Its links may break. Nothing else is killed, and nobody asks for cuts.
    """
    other, draw = durable(seed, mode), random.Random(f"backups {seed} {mode}")
    if other.mode not in ALL_PAIRED_MODES:
        return replace(other, is_durable=False)
    name, at_s = f"pserver {draw.randrange(2)}", round(draw.uniform(0.1, 0.6), 4)
    kill = Strike(at_s, ProcessFault.KILL, name, round(draw.uniform(0.1, 2), 2))
    pause = Strike(at_s, ProcessFault.PAUSE, name, round(draw.uniform(0.1, 20), 2))
    broken = tuple(
        (frame * draw.randint(1, 12), fault)  # many of them once there are copies
        for frame, fault in other.links
        if fault in (LinkFault.CUT, LinkFault.DOUBLE)
    )
    return replace(
        other,
        steps=tuple(draw.randint(20, 60) for _ in other.steps),
        links=broken if draw.random() < 0.5 else (),
        strikes=(draw.choice([kill, kill, pause]),),
        joins_s=tuple(0.0 for _ in other.steps),
        cuts_s=(),
        failing_syncs=(),
        ends_with_cut=False,
        has_backups=True,
    )


def interrupted(seed: int, mode: str | None = None) -> Scenario:
    """A job in which one or two trainers are asked to end while they train, perhaps to be started
    again; its other faults are those that `drawn` gives, every other time."""
    other, draw = drawn(seed, mode), random.Random(f"interrupted {seed} {mode}")
    trainers = draw.sample(range(len(other.steps)), min(len(other.steps), draw.choice([1, 1, 2])))
    signals = [
        Strike(round(draw.uniform(0.005, 0.1), 4), ProcessFault.INTERRUPT, f"trainer {number}", 0.0)
        for number in trainers
    ]
    faults = draw.random() < 0.5
    return replace(
        other,
        joins_s=tuple(0.0 for _ in other.steps),
        links=other.links if faults else (),
        strikes=(*signals, *(other.strikes if faults else ())),
    )


def _strike(draw: random.Random, trainers: int, pservers_die: bool) -> Strike:
    of_pserver = draw.random() < 0.3
    name = f"pserver {draw.randrange(2)}" if of_pserver else f"trainer {draw.randrange(trainers)}"
    fault = draw.choice([ProcessFault.KILL, ProcessFault.PAUSE])
    if of_pserver and not pservers_die:
        fault = ProcessFault.PAUSE
    stays_dead = fault is ProcessFault.KILL and draw.random() < 0.3
    at_s = draw.choice([draw.uniform(0, 0.08), draw.uniform(0, 0.08), draw.uniform(0, 5)])
    return Strike(
        round(at_s, 4), fault, name, 0.0 if stays_dead else round(draw.uniform(0.1, 4), 2)
    )
