"""The round of a seed, run in any process: its outcome, and what is printed of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.children import plant
from tests.faults.drawing import drawn, with_clocks, with_hosts, with_late_trainer
from tests.faults.hosts import enter_own
from tests.faults.report import failure_of, repeat_of
from tests.faults.rounds import Outcome, remove, run


@dataclass(frozen=True)
class Draw:
    """Draws of all seeds, None = anything; `pservers_die` None = in odd seeds.

    With `clocks` wall clocks are moved: `clocks.preload` was called. With `hosts` each process has
    a network of its own.
    """

    mode: str | None
    carrier: str | None
    pservers_die: bool | None
    disks: bool
    planted: str = ""
    show: bool = False
    keep: bool = False
    clocks: bool = False
    hosts: bool = False


def round_of(draw: Draw, seed: int) -> tuple[Outcome, str]:
    """Run the round of a seed; its text is empty unless it broke a promise, or all is shown."""
    plant(draw.planted)
    die = seed % 2 == 1 if draw.pservers_die is None else draw.pservers_die
    round = with_late_trainer(drawn(seed, draw.mode, draw.carrier, die, draw.disks))
    round = with_clocks(round) if draw.clocks else round
    if draw.hosts:
        enter_own()
        round = with_hosts(round)
    outcome = run(round)
    options = _options(draw, die)
    outcome.repeat = repeat_of(outcome.round, options)
    text = failure_of(outcome, options) if draw.show or outcome.violation else ""
    if not (draw.keep and outcome.violation):
        remove(outcome)
    return outcome, text


def _options(draw: Draw, pservers_die: bool) -> str:
    named = ("mode", draw.mode), ("carrier", draw.carrier)
    options = "".join(f" --{name} {value}" for name, value in named if value)
    planted = f" --planted {draw.planted!r}" if draw.planted else ""
    options += " --pservers-die" * pservers_die + " --clocks" * draw.clocks
    return options + " --hosts" * draw.hosts + planted
