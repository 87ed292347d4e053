"""Tables are kept within their limits, and shrunk when asked, by clocks that tests move."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import TableError, WireError
from psrt.pserver.eviction.policies import LONGEST_WITHOUT, SweepSchedule, by_memory
from psrt.pserver.eviction.sweeping import ages, sweep
from psrt.pserver.eviction.upkeep import Upkeep
from psrt.pserver.tables.meters import Meters
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.two_part_table import TwoPartTable
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.pserver import CALL_TIMEOUT_S, inproc_pserver

HOUR = 480_000


def spec_of(life: specs.Lifecycle | None, **changes: Any) -> specs.SparseTableSpec:
    start = specs.Constant(0.0)
    spec = specs.SparseTableSpec("emb", 4, start, specs.Sgd(), specs.ConstantRate(0.1), 7)
    return replace(spec, lifecycle=life, **changes)


def push(table: SparseTable, ids: Iterable[int], now: int = 0) -> None:
    routed = table.route(np.array(list(ids), np.int64))
    table.apply(routed, np.ones((len(routed.ids), 4), np.float32), 0.1, None, now)


class Host:
    """One table, its upkeep, the hour and the time of the job."""

    def __init__(self, life: specs.Lifecycle | None, **changes: Any) -> None:
        self.hour, self.time = HOUR, 0
        self.table = SparseTable(spec_of(life, **changes), 2, None, lambda: self.hour)
        self.meters = Meters()
        self.upkeep = Upkeep(
            lambda: [self.table], self.meters, lambda: self.hour, lambda: self.time
        )

    def ids(self) -> list[int]:
        return sorted(self.table.export(0, 1000)[0].tolist())

    def sweep_due(self) -> dict[str, int]:
        dropped = self.upkeep.sweep_due()
        return dropped["emb"].rows if dropped else {}


def test_a_table_is_looked_through_each_eighth_of_its_limits() -> None:
    rhythm = SweepSchedule(specs.Lifecycle(ttl_rounds=80, ttl_days=2), hour=HOUR)

    due = [rhythm.is_due(version, HOUR) for version in (5, 9, 10, 15, 19, 20)]
    by_hours = [rhythm.is_due(20, HOUR + hours) for hours in (5, 6, 11, 12)]

    assert due == [False, False, True, False, False, True]
    assert by_hours == [False, True, False, True]


@pytest.mark.parametrize("limit", [1, 3])
def test_a_small_limit_is_looked_after_every_update(limit: int) -> None:
    rhythm = SweepSchedule(specs.Lifecycle(ttl_rounds=limit))

    assert [rhythm.is_due(version, HOUR) for version in (0, 1, 1, 2)] == [False, True, False, True]


def test_rows_past_their_rounds_are_dropped_beside_training() -> None:
    host = Host(specs.Lifecycle(ttl_rounds=8))
    push(host.table, range(100))
    for _ in range(9):
        push(host.table, range(10))

    first, second = host.sweep_due(), host.sweep_due()

    assert first["rounds"] == 90
    assert second == {}
    assert host.table.rows == 10
    assert host.meters.rows_dropped.value == 90


def shares(pservers: int, life: specs.Lifecycle, **changes: Any) -> list[Host]:
    bounds = [1024 * number // pservers for number in range(pservers + 1)]
    return [
        Host(life, first_shard=first, last_shard=last, **changes)
        for first, last in itertools.pairwise(bounds)
    ]


@pytest.mark.parametrize("growth", [None, specs.Growth(1)])
@pytest.mark.parametrize("pservers", [1, 2, 4])
def test_rows_on_all_pservers_of_a_table_age_alike(
    pservers: int, growth: specs.Growth | None
) -> None:
    hosts = shares(pservers, specs.Lifecycle(ttl_rounds=8))
    if growth is not None:
        for host in hosts:
            host.table = TwoPartTable(replace(host.table.spec, growth=growth), 2)  # type: ignore[assignment]
    for time in range(1, 21):
        pushed_by_all(hosts, range(1, 9) if time == 1 else [11], time)
        for host in hosts:
            host.sweep_due()

    assert sorted(row_id for host in hosts for row_id in host.ids()) == [11]


def pushed_by_all(hosts: list[Host], ids: Iterable[int], time: int) -> None:
    """A round: each pserver gets its own ids only, and all of them count the round."""
    for host in hosts:
        host.time = time
        mine = [row_id for row_id in ids if holds(host.table, row_id)]
        if mine:
            push(host.table, mine, time)


def test_rows_bear_the_time_of_the_job_and_tables_count_their_updates() -> None:
    host = Host(specs.Lifecycle(ttl_rounds=8))

    push(host.table, [1], 40)
    push(host.table, [2], 41)

    assert host.table.version == 2
    assert [host.table.time(now) for now in (0, 41, 50)] == [41, 41, 50]


def test_pushes_that_bring_no_time_of_the_job_move_a_table_on() -> None:
    host = Host(specs.Lifecycle(ttl_rounds=8))

    for _ in range(3):
        push(host.table, [1], 5)

    assert host.table.time(5) == 7


def test_a_table_whose_updates_move_all_rows_ages_by_its_version() -> None:
    host = Host(specs.Lifecycle(ttl_rounds=8), optimizer=specs.Adam(lazy=False))
    push(host.table, [1], 40)
    push(host.table, [2], 40)

    assert host.table.time(99) == host.table.version == 2


def test_a_row_that_was_not_pushed_for_ever_is_still_the_oldest() -> None:
    host = Host(specs.Lifecycle(max_bytes=1 << 40))
    push(host.table, range(50), 1)
    while host.time < 5 << 30:
        host.time += LONGEST_WITHOUT
        host.sweep_due()
    push(host.table, range(50, 100), host.time)

    oldest = by_memory(ages(host.table, host.time, lambda: None), 50, host.time, HOUR)
    sweep(host.table, oldest, lambda: None)

    assert host.ids() == list(range(50, 100))


def test_rows_past_their_days_are_dropped_when_the_hours_have_passed() -> None:
    host = Host(specs.Lifecycle(ttl_days=1))
    push(host.table, range(100))
    host.sweep_due()
    host.hour += 20
    push(host.table, range(10))

    assert host.sweep_due() == {}
    host.hour += 5
    assert host.sweep_due()["days"] == 90


def test_a_table_beyond_its_memory_loses_the_rows_pushed_longest_ago() -> None:
    host = Host(specs.Lifecycle(max_bytes=400_000))
    for start in range(0, 20_000, 1000):
        push(host.table, range(start, start + 1000))
    before = host.table.nbytes

    dropped = looked_through(host)

    assert before > 400_000 >= host.table.nbytes
    assert host.table.rows == 20_000 - dropped > 5_000
    left = host.table.export(0, 20_000)[0]
    assert set(range(19_000, 20_000)) <= set(left.tolist())
    assert left.min() >= 20_000 - len(left) * 1.3  # ages are known to an eighth


def looked_through(host: Host) -> int:
    """Looks until nothing is dropped any more, and how many rows were: an index gives memory back
    by and by."""
    dropped = 0
    for _ in range(10):
        found = host.sweep_due()
        if not found:
            return dropped
        dropped += found["memory"]
    raise AssertionError("the table never came within its memory")


def test_a_share_of_a_table_may_take_its_share_of_the_memory() -> None:
    half = Host(specs.Lifecycle(max_bytes=400_000), last_shard=512)
    ids = np.arange(40_000, dtype=np.int64)
    mine = [i for i in ids.tolist() if holds(half.table, i)]
    routed = half.table.route(np.array(mine, np.int64))
    half.table.apply(routed, np.ones((len(mine), 4), np.float32), 0.1)

    looked_through(half)

    assert half.table.nbytes <= 200_000


def holds(table: SparseTable, row_id: int) -> bool:
    try:
        table.route(np.array([row_id], np.int64))
    except TableError:
        return False
    return True


def test_a_limit_below_what_an_index_takes_is_told_once_and_leaves_some_rows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Host(specs.Lifecycle(max_bytes=20_000))
    push(host.table, range(1000))

    with caplog.at_level(logging.WARNING, "psrt.pserver"):
        host.upkeep.tables_added()
        host.upkeep.tables_added()
    looked_through(host)

    (report,) = (record.getMessage() for record in caplog.records)
    assert "table emb may take 20000 bytes on this pserver, and its index takes" in report
    assert 100 < host.table.rows < 1000


def test_a_limit_that_holds_an_index_and_rows_is_not_spoken_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Host(specs.Lifecycle(max_bytes=400_000)).upkeep.tables_added()
    Host(specs.Lifecycle(ttl_rounds=3)).upkeep.tables_added()

    assert caplog.records == []


def test_a_table_without_limits_is_left_alone() -> None:
    host = Host(specs.Lifecycle(delete_score=1.0, decay=0.5))
    push(host.table, range(10))

    assert host.sweep_due() == {}
    assert host.table.rows == 10


def test_a_shrink_that_is_repeated_is_answered_as_before_and_decays_once() -> None:
    host = Host(specs.Lifecycle(delete_score=0.3, decay=0.5))
    for _ in range(8):
        push(host.table, range(10))  # a score of 0.8

    first = host.upkeep.shrink([], number=1, dry_run=False)
    again = [host.upkeep.shrink([], number=1, dry_run=False) for _ in range(3)]
    report = host.upkeep.shrink([], number=2, dry_run=True)
    other = host.upkeep.shrink(["emb"], number=3, dry_run=False)

    assert [found["emb"].total for found in (first, *again)] == [0, 0, 0, 0]
    assert report["emb"].rows["score"] == other["emb"].rows["score"] == 10
    assert host.table.rows == 0


def test_a_shrink_that_asks_for_something_else_is_no_repetition() -> None:
    host = Host(specs.Lifecycle(delete_score=0.3))
    push(host.table, range(10))

    other = host.upkeep.shrink(["other"], number=1, dry_run=False)
    report = host.upkeep.shrink(["emb"], number=1, dry_run=True)
    done = host.upkeep.shrink(["emb"], number=1, dry_run=False)
    push(host.table, range(10))
    again = host.upkeep.shrink(["emb"], number=1, dry_run=False)
    of_another = host.upkeep.shrink(["emb"], number=1, dry_run=False, trainer=1)

    assert other == {}
    assert report["emb"].total == done["emb"].total == of_another["emb"].total == 10
    assert again is done


def test_a_shrink_without_a_number_is_refused() -> None:
    host = Host(specs.Lifecycle(delete_score=0.3))
    push(host.table, range(10))

    with pytest.raises(WireError, match="SHRINK without a number; nothing was dropped"):
        host.upkeep.shrink([], number=0, dry_run=False)
    assert host.table.rows == 10


# --- through the service ----------------------------------------------------------------------


def shrink(client: Client, number: int, *tables: str, dry_run: bool = False) -> Any:
    header = pb.Header(shrink=pb.Shrink(tables=tables, number=number, dry_run=dry_run))
    reply = client.call(Method.SHRINK, header=header, timeout_s=CALL_TIMEOUT_S)
    return reply.header.shrink_reply.tables


def pushed(client: Client, sequence: int, ids: np.ndarray, counts: np.ndarray | None) -> None:
    header = pb.Header(step=1)
    part = header.parts.add(kind=2, table="emb", counts=counts is not None)
    header.push_key.CopyFrom(client.next_push_key())
    tensors = [ids, np.ones((len(ids), 4), np.float32)]
    client.call(
        Method.PUSH,
        header=header,
        tensors=tensors if counts is None else [*tensors, counts],
        timeout_s=CALL_TIMEOUT_S,
    )
    assert part.table == "emb"


def test_a_trainer_shrinks_the_tables_of_a_pserver() -> None:
    spec = spec_of(
        specs.Lifecycle(delete_score=0.5, decay=0.9), admission=specs.ShowClick("show", "click")
    )
    ids = np.arange(10, dtype=np.int64)
    clicked = np.array([[1, i % 2] for i in range(10)], np.float32)
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, spec)
        pushed(client, 1, ids, clicked)

        (report,) = shrink(client, 5, dry_run=True)
        rows_then = pserver.service.tables.sparse("emb").rows
        (done,) = shrink(client, 6, "emb")
        with pytest.raises(TableError, match="'other' is not registered"):
            shrink(client, 7, "other")

        assert (report.table, dict(report.rows)["score"], rows_then) == ("emb", 5, 10)
        assert dict(done.rows) == {"rounds": 0, "days": 0, "score": 5, "memory": 0}
        assert done.bytes > 0
        assert pserver.service.status()["counters"]["pserver_rows_dropped"] == 5


def test_a_status_tells_how_many_updates_were_refused() -> None:
    spec = spec_of(None, admission=specs.CountFilter(2))
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, spec)
        pushed(client, 1, np.arange(10, dtype=np.int64), None)
        pushed(client, 2, np.arange(4, dtype=np.int64), None)

        (table,) = pserver.service.status()["tables"]

        assert (table["rows"], table["refused"]) == (4, 10)
        assert table["waiting_bytes"] > 0


def test_sweeps_and_shrinks_come_after_a_freeze_that_puts_them_off() -> None:
    host = Host(specs.Lifecycle(ttl_rounds=8, delete_score=1e9))
    push(host.table, range(100))
    host.time = 20
    started, dropped = threading.Barrier(3), []

    def swept() -> None:
        started.wait(30.0)
        dropped.append(host.sweep_due())

    def shrunk() -> None:
        started.wait(30.0)
        dropped.append(host.upkeep.shrink([], 1, False)["emb"].rows)

    threads = [threading.Thread(target=each) for each in (swept, shrunk)]
    with host.upkeep.put_off(), host.table.freeze() as frozen:
        for thread in threads:
            thread.start()
        started.wait(30.0)
        rows = sum(len(page["rows"]) for page in frozen.pages())
        assert (rows, host.table.rows, frozen.saved_rows) == (100, 100, 0)
    for thread in threads:
        thread.join(30.0)

    assert len(dropped) == 2
    assert host.table.rows == 0
