"""Reports of pservers as values; unknown fields of other releases are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class TrainerFacts:
    """A trainer as one pserver sees it; `silent_s` is None for one that has not called yet."""

    trainer: int
    state: str
    presence: str
    silent_s: float | None


@dataclass(frozen=True)
class TableFacts:
    """A table of one pserver; `rows` is None for a dense one."""

    name: str
    kind: str
    size_bytes: int
    rows: int | None


@dataclass(frozen=True)
class ClockFacts:
    """A named clock: the time that each trainer has reached, and who waits on it."""

    name: str
    reached: tuple[int, ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True)
class PserverFacts:
    """STATUS of the pserver at `endpoint`, `at_s` seconds after an arbitrary start."""

    endpoint: str
    at_s: float
    pid: int
    job: str
    mode: str
    round: int
    global_step: int
    in_round: tuple[int, ...]
    clocks: tuple[ClockFacts, ...]
    trainers: tuple[TrainerFacts, ...]
    tables: tuple[TableFacts, ...]
    is_loading: bool
    recovers_from: tuple[int, ...]
    durable_lag: int
    problem: str
    counters: Mapping[str, float]
    plan_hash: str = ""
    version: str = ""
    clock_ahead_s: float | None = None
    memory_bytes: int = 0
    memory_limit_bytes: int = 0

    @classmethod
    def of(
        cls, endpoint: str, at_s: float, status: Mapping[str, Any], asked_s: float | None = None
    ) -> Self:
        """The facts of one reply to STATUS; `asked_s` is the time here then, since 1970."""
        return cls(
            endpoint=endpoint,
            at_s=at_s,
            pid=int(status.get("pid", 0)),
            job=str(status.get("job_id") or ""),
            mode=str(status.get("mode") or ""),
            round=int(status.get("round", 0)),
            global_step=int(status.get("global_step", 0)),
            in_round=tuple(status.get("waiting", ())),
            clocks=tuple(map(_clock, status.get("clocks", ()))),
            trainers=tuple(map(_trainer, status.get("trainers", ()))),
            tables=tuple(map(_table, status.get("tables", ()))),
            is_loading=bool(status.get("loading")),
            recovers_from=tuple(status.get("recovers_from", ())),
            durable_lag=int(status.get("durable_lag_pushes", 0)),
            problem=str(status.get("error") or status.get("durable_problem") or ""),
            counters=status.get("counters", {}),
            plan_hash=str(status.get("plan_hash") or ""),
            version=str(status.get("version", "")),
            clock_ahead_s=_difference(status.get("now_s"), asked_s),
            memory_bytes=int(status.get("memory_bytes", 0)),
            memory_limit_bytes=int(status.get("memory_limit_bytes", 0)),
        )

    @property
    def rows(self) -> int:
        return sum(table.rows or 0 for table in self.tables)

    @property
    def table_bytes(self) -> int:
        return sum(table.size_bytes for table in self.tables)


@dataclass(frozen=True)
class Unreachable:
    """A pserver that did not answer, and why; `code` is the name of the error."""

    endpoint: str
    reason: str
    code: str = ""


@dataclass(frozen=True)
class ClusterFacts:
    """The pservers of a job, in the order in which they were named."""

    pservers: tuple[PserverFacts | Unreachable, ...]

    @property
    def reached(self) -> list[PserverFacts]:
        return [each for each in self.pservers if isinstance(each, PserverFacts)]

    @property
    def unreachable(self) -> list[Unreachable]:
        return [each for each in self.pservers if isinstance(each, Unreachable)]


def _difference(there: float | None, here: float | None) -> float | None:
    return None if there is None or here is None else there - here


def _clock(record: Mapping[str, Any]) -> ClockFacts:
    return ClockFacts(str(record["clock"]), tuple(record["reached"]), tuple(record["waiting"]))


def _trainer(record: Mapping[str, Any]) -> TrainerFacts:
    silent_s = record.get("silent_s")
    return TrainerFacts(
        int(record["trainer"]), str(record["state"]), str(record.get("presence", "")), silent_s
    )


def _table(record: Mapping[str, Any]) -> TableFacts:
    rows = record.get("rows")
    return TableFacts(str(record["name"]), str(record["kind"]), int(record["bytes"]), rows)
