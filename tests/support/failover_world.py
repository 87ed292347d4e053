"""A part with two pservers and two trainers, as a model: every event that may come next.

Copies and deposals are decided by the real `CopyState` and `Deposal`; tables are sets of pushes.
Any call may happen or not, trainers depose without reason, and the pservers may be killed once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from psrt.pserver.replicas.copy_state import Answer, CopyState, Piece
from psrt.rpc.deposal import Deposal
from psrt.rpc.pairs import Pair

Push = tuple[int, int]
"""Trainer and sequence."""

PAIR = Pair(0, "home", "other")
OLD, NEW = 1, 2
"""Incarnations of tables: those of the job, and those of an empty pserver."""
MOST_PUSHES, MOST_TICKS, MOST_EPOCHS = 2, 3, 2


@dataclass
class ModelPserver:
    """One process: what it serves, and what it keeps a copy of."""

    name: str
    serves: int | None = None  # the epoch in which it serves the part
    tables: dict[Push, int] = field(default_factory=dict)  # how often each push was applied
    durable: frozenset[Push] = frozenset()
    needs_full: bool = True
    ticks: int = 0
    incarnation: int = OLD
    copy: CopyState = field(default_factory=CopyState)
    copied: dict[Push, int] = field(default_factory=dict)

    def apply(self, push: Push) -> None:
        self.tables.setdefault(push, 1)  # by its key, a repetition counts once


@dataclass
class ModelTrainer:
    number: int
    deposal: Deposal = field(default_factory=Deposal)
    pushed: int = 0
    retained: set[Push] = field(default_factory=set)
    acknowledged: set[Push] = field(default_factory=set)


class FailoverWorld:
    """One state; `events` are the states that may follow, each with its name."""

    def __init__(self) -> None:
        self.pservers = {"home": ModelPserver("home", serves=0), "other": ModelPserver("other")}
        self.trainers = [ModelTrainer(0), ModelTrainer(1)]
        self.kills = 0

    def events(self) -> Iterator[tuple[str, Callable[[FailoverWorld], None]]]:
        for name, pserver in self.pservers.items():
            if pserver.serves is not None and pserver.ticks < MOST_TICKS:
                yield f"{name} sends a tick", lambda w, n=name: w.tick(n)
                yield f"{name} sends a tick, the reply is lost", lambda w, n=name: w.tick(n, True)
            if self._may_be_killed(pserver):
                yield f"{name} is killed", lambda w, n=name: w.kill(n)
        for number, trainer in enumerate(self.trainers):
            if trainer.deposal.is_deposed:
                yield f"trainer {number} asks the backup", lambda w, t=number: w.ask(t)
                continue
            if trainer.deposal.epoch < MOST_EPOCHS:
                yield f"trainer {number} deposes", lambda w, t=number: w.depose(t)
            if trainer.pushed < MOST_PUSHES:
                yield f"trainer {number} pushes", lambda w, t=number: w.push(t)
            if trainer.retained:
                yield f"trainer {number} is told what is durable", lambda w, t=number: w.told(t)

    def _may_be_killed(self, pserver: ModelPserver) -> bool:
        """True if another one has the part, so that no two failures come at once."""
        if self.kills:
            return False
        other = next(each for each in self.pservers.values() if each is not pserver)
        is_doubted = any(each.deposal.is_deposed for each in self.trainers)
        if pserver.serves is not None:
            is_kept = other.copy.is_copy and other.copy.epoch == pserver.serves
            return is_kept or not pserver.durable
        return other.serves is not None and not is_doubted

    def after(self, event: Callable[[FailoverWorld], None]) -> FailoverWorld:
        following: FailoverWorld = pickle.loads(pickle.dumps(self))
        event(following)
        return following

    @property
    def key(self) -> str:
        """Text that is equal for equal states."""
        pservers = [
            (p.name, p.serves, p.needs_full, p.ticks, p.incarnation, sorted(p.tables.items()))
            for p in self.pservers.values()
        ]
        copies = [
            (sorted(p.durable), sorted(p.copied.items()), sorted(vars(p.copy).items()))
            for p in self.pservers.values()
        ]
        trainers = [
            (sorted(vars(t.deposal).items()), t.pushed, sorted(t.retained), sorted(t.acknowledged))
            for t in self.trainers
        ]
        return f"{pservers} {copies} {trainers} {self.kills}"

    # --- events ----------------------------------------------------------------------------------

    def push(self, number: int) -> None:
        trainer = self.trainers[number]
        found = self._used_by(trainer)
        if found is None:
            return
        trainer.pushed += 1
        push = (number, trainer.pushed)
        found.apply(push)
        trainer.retained.add(push)
        trainer.acknowledged.add(push)

    def told(self, number: int) -> None:
        trainer = self.trainers[number]
        found = self._used_by(trainer)
        if found is not None:
            trainer.retained -= found.durable

    def depose(self, number: int) -> None:
        deposal = self.trainers[number].deposal
        deposal.fenced(deposal.epoch)

    def ask(self, number: int) -> None:
        trainer = self.trainers[number]
        epoch = trainer.deposal.epoch
        backup = self.pservers[PAIR.backup(epoch)]
        if backup.copy.epoch == epoch and not backup.copy.is_copy:
            trainer.deposal.withdrawn()
        if backup.copy.deposed(number, epoch, {0, 1}):
            backup.copy.serve()
            backup.tables, backup.serves = dict(backup.copied), backup.copy.epoch
            backup.durable, backup.needs_full, backup.ticks = frozenset(), True, 0
            backup.incarnation = backup.copy.incarnation
        if backup.copy.epoch > epoch and trainer.deposal.served(backup.copy.epoch):
            serving = self._used_by(trainer)
            for push in trainer.retained if serving is not None else ():
                serving.apply(push)

    def tick(self, name: str, reply_is_lost: bool = False) -> None:
        sender = self.pservers[name]
        assert sender.serves is not None
        backup = self.pservers[PAIR.backup(sender.serves)]
        sender.ticks += 1
        is_whole, taken = sender.needs_full, dict(sender.tables)
        piece = Piece(sender.serves, sender.incarnation, sender.ticks, 0, True, is_whole)
        answer = backup.copy.offered(piece)
        if not backup.copy.serves:
            backup.serves = None
        if answer is Answer.APPLY:
            backup.copied = taken if is_whole else {**backup.copied, **taken}
            backup.copy.applied(sender.ticks)
        if answer is Answer.FENCED and not reply_is_lost:
            sender.serves = None
        elif answer is Answer.APPLY and not reply_is_lost:
            sender.needs_full, sender.durable = False, frozenset(taken)
        else:
            sender.needs_full = True

    def kill(self, name: str) -> None:
        """End a process; another one is there at once, with empty tables that nobody has met.

        The new home serves them: a trainer that was started again has registered them there.
        """
        self.kills = 1
        serves = 0 if name == PAIR.home else None
        self.pservers[name] = ModelPserver(name, serves, incarnation=NEW)

    # --- promises --------------------------------------------------------------------------------

    def check(self) -> None:
        """Assert what holds in every state."""
        for serving in self._serving():
            for trainer in self.trainers:
                uses = trainer.deposal.epoch < (serving.serves or 0)
                assert not uses or trainer.deposal.is_deposed, "two pservers are used at once"
            assert set(serving.tables.values()) <= {1}, "a push counts twice"
        held = self._newest()
        for trainer in self.trainers:
            lost = trainer.acknowledged - trainer.retained - set(held)
            assert not lost, f"pushes {sorted(lost)} are lost"

    def _serving(self) -> list[ModelPserver]:
        """The processes that serve the job's tables."""
        found = [each for each in self.pservers.values() if each.serves is not None]
        return [each for each in found if each.incarnation == OLD]

    def _newest(self) -> dict[Push, int]:
        """The tables of the part: of the pserver that serves it, or else of the copy."""
        if serving := self._serving():
            return max(serving, key=lambda each: each.serves or 0).tables
        copies = [each for each in self.pservers.values() if each.copy.is_copy]
        return max(copies, key=lambda each: each.copy.epoch).copied if copies else {}

    def _used_by(self, trainer: ModelTrainer) -> ModelPserver | None:
        """The pserver that a call of a trainer reaches, None = none answers."""
        if trainer.deposal.is_deposed:
            return None
        found = self.pservers[PAIR.serving(trainer.deposal.epoch).endpoint]
        is_met = found.incarnation == OLD and found.serves == trainer.deposal.epoch
        return found if is_met else None
