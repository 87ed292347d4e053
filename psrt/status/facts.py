"""Reports of pservers as values; unknown fields of other releases are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class TrainerFacts:
    """A trainer as one pserver sees it; `silent_s` is None for one that has not called yet.

    `staleness` is that of its gradients: their number, the sum, and the worst of the newest push.
    `late` is its part in rounds: pushes, and the seconds that they came after the first one.
    """

    trainer: int
    state: str
    presence: str
    silent_s: float | None
    staleness: tuple[int, int, int] | None = None
    late: tuple[int, float] | None = None


@dataclass(frozen=True)
class TableFacts:
    """A table of one pserver; `rows` is None for a dense one, which is a block of `parameter`.

    A sparse one has the virtual shards from the first to before the last of `shards`, out of
    `virtual_shards`; `stripes` are groups of them, with the rows of each. `hot_ids` are the ids
    pulled most, with their fractions of the ids pulled here, of which `sampled_ids` were looked at.
    """

    name: str
    kind: str
    size_bytes: int
    rows: int | None
    parameter: str = ""
    shards: tuple[int, int] | None = None
    virtual_shards: int = 0
    stripes: tuple[tuple[int, int, int], ...] = ()
    hot_ids: tuple[tuple[int, float], ...] = ()
    sampled_ids: int = 0


@dataclass(frozen=True)
class ClockFacts:
    """A named clock: the time that each trainer has reached, and who waits on it.

    `waiting_s` has the seconds that each has waited; empty from earlier releases.
    """

    name: str
    reached: tuple[int, ...]
    waiting: tuple[int, ...]
    waiting_s: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenCutFacts:
    """A cut that some trainers wait to take part in, and those that are missing."""

    number: int
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    for_s: float


@dataclass(frozen=True)
class CutFacts:
    """The cuts of one pserver: records of the newest complete, one being written, one given up.

    `complete` is the newest complete cut there, 0 = none; `proposed` is one that
    trainers are about to take part in. `ends` are numbers of cuts by what became of them.
    """

    complete: int
    proposed: int
    newest: Mapping[str, Any] | None
    writing: Mapping[str, Any] | None
    given_up: Mapping[str, Any] | None
    ends: Mapping[str, int]


@dataclass(frozen=True)
class ErrorFacts:
    """Errors of one code: their number, and the newest one."""

    code: str
    count: int
    message: str
    hint: str
    trainer: int | None
    age_s: float


@dataclass(frozen=True)
class PserverFacts:
    """STATUS of the pserver at `endpoint`, `at_s` seconds after an arbitrary start.

    `status` is all of it, as the pserver sent it.
    """

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
    incarnation: int = 0
    pservers: Mapping[str, int] = field(default_factory=dict)
    waiting_s: Mapping[int, float] = field(default_factory=dict)
    open_cut: OpenCutFacts | None = None
    cuts: CutFacts | None = None
    errors: tuple[ErrorFacts, ...] = ()
    is_durable: bool = False
    status: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

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
            trainers=tuple(_trainers(status)),
            tables=tuple(map(_table, status.get("tables", ()))),
            is_loading=bool(status.get("loading")),
            recovers_from=tuple(status.get("recovers_from", ())),
            durable_lag=int(status.get("durable_lag_pushes", 0)),
            problem=_problem(status),
            counters=status.get("counters", {}),
            plan_hash=str(status.get("plan_hash") or ""),
            version=str(status.get("version", "")),
            clock_ahead_s=_difference(status.get("now_s"), asked_s),
            memory_bytes=int(status.get("memory_bytes", 0)),
            memory_limit_bytes=int(status.get("memory_limit_bytes", 0)),
            incarnation=int(status.get("incarnation", 0)),
            pservers=status.get("pservers", {}),
            waiting_s=_seconds(status),
            open_cut=_open_cut(status.get("open_cut")),
            cuts=_cuts(status.get("cuts")),
            errors=tuple(map(_error, status.get("errors", ()))),
            is_durable=bool(status.get("is_durable")),
            status=status,
        )

    @property
    def rows(self) -> int:
        return sum(table.rows or 0 for table in self.tables)

    @property
    def table_bytes(self) -> int:
        return sum(table.size_bytes for table in self.tables)


@dataclass(frozen=True)
class Unreachable:
    """A pserver that did not answer, why, the name of the error as `code`, and its `hint`."""

    endpoint: str
    reason: str
    code: str = ""
    hint: str = ""


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


def _problem(status: Mapping[str, Any]) -> str:
    """The error that has ended the job, or keeps pushes from becoming durable."""
    error = status.get("error")
    if isinstance(error, Mapping):
        return f"{error['message']} {error['hint']}".strip()
    return str(error or status.get("durable_problem") or "")


def _seconds(record: Mapping[str, Any]) -> dict[int, float]:
    return {int(trainer): float(since) for trainer, since in record.get("waiting_s", {}).items()}


def _clock(record: Mapping[str, Any]) -> ClockFacts:
    reached, waiting = tuple(record["reached"]), tuple(record["waiting"])
    return ClockFacts(str(record["clock"]), reached, waiting, _seconds(record))


def _open_cut(record: Mapping[str, Any] | None) -> OpenCutFacts | None:
    if record is None:
        return None
    waiting, missing = tuple(record["waiting"]), tuple(record["missing"])
    return OpenCutFacts(int(record["number"]), waiting, missing, float(record["for_s"]))


def _cuts(record: Mapping[str, Any] | None) -> CutFacts | None:
    if record is None:
        return None
    known = int(record["complete"]), int(record["proposed"])
    return CutFacts(*known, record["newest"], record["writing"], record["given_up"], record["ends"])


def _error(record: Mapping[str, Any]) -> ErrorFacts:
    texts = str(record["message"]), str(record["hint"])
    age_s = float(record["age_s"])
    return ErrorFacts(str(record["code"]), int(record["count"]), *texts, record["trainer"], age_s)


def _trainers(status: Mapping[str, Any]) -> Iterator[TrainerFacts]:
    staleness, late = status.get("staleness", {}), status.get("round_waits", {})
    for record in status.get("trainers", ()):
        number = str(record["trainer"])
        yield TrainerFacts(
            int(number),
            str(record["state"]),
            str(record.get("presence", "")),
            record.get("silent_s"),
            tuple(staleness[number]) if number in staleness else None,
            tuple(late[number]) if number in late else None,
        )


def _table(record: Mapping[str, Any]) -> TableFacts:
    shards = record.get("shards")
    return TableFacts(
        str(record["name"]),
        str(record["kind"]),
        int(record["bytes"]),
        record.get("rows"),
        str(record.get("parameter", "")),
        None if shards is None else (int(shards[0]), int(shards[1])),
        int(record.get("virtual_shards", 0)),
        tuple((first, last, rows) for first, last, rows in record.get("stripes", ())),
        tuple((number, fraction) for number, fraction in record.get("hot_ids", ())),
        int(record.get("sampled_ids", 0)),
    )
