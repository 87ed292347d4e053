"""The limit of the memory of all tables: what is refused, and that it has changed nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import ErrorCode, TableError
from psrt.core.types import F32, I64
from psrt.pserver.serving.service import PserverService
from psrt.pserver.tables import TableRegistry
from psrt.pserver.tables import memory_limit as limits
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_ROWS, PUSH_ROWS
from tests.support.inproc import Faults, InprocServer
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S, TABLE, register

MIB = 1 << 20
ROWS = specs.SparseTableSpec(
    "emb", 64, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0), 1
)
GROWING = replace(ROWS, name="growing", growth=specs.Growth(8, 1.0))
BATCH = 512


@contextlib.contextmanager
def joined(limit_bytes: int) -> Iterator[Client]:
    """A trainer of a pserver whose tables are limited."""
    service = PserverService(stripes=2, wait_timeout_s=20.0, table_bytes=limit_bytes)
    service.start()
    server = InprocServer(service.handle, Faults())
    hello = pb.Hello(job_id="test", plan_hash="plan", trainers=1, mode=specs.to_json(specs.Async()))
    client = Client("inproc", 0, 1000, server, hello, retry=AT_ONCE)
    try:
        client.connect(CALL_TIMEOUT_S)
        yield client
    finally:
        server.stop()
        service.stop()


def push(client: Client, ids: I64, table: str = "emb") -> None:
    header = pb.Header(push_key=client.next_push_key(), step=1)
    header.parts.add(kind=PUSH_ROWS, table=table)
    ones = np.ones((len(ids), 64), np.float32)
    client.call(Method.PUSH, header=header, tensors=[ids, ones], timeout_s=CALL_TIMEOUT_S)


def pull(client: Client, ids: I64) -> F32:
    header = pb.Header()
    header.parts.add(kind=PULL_ROWS, table="emb")
    reply = client.call(Method.PULL, header=header, tensors=[ids], timeout_s=CALL_TIMEOUT_S)
    rows: F32 = reply.tensors[0]
    return rows


def filled(client: Client, table: str = "emb") -> int:
    """Push new ids until they are refused; returns how many batches were not."""
    return next(batch for batch in range(1000) if is_refused(client, batch, table))


def is_refused(client: Client, batch: int, table: str) -> bool:
    try:
        push(client, np.arange(batch * BATCH, (batch + 1) * BATCH), table)
    except TableError as error:
        return error.code is ErrorCode.TABLE_FULL and "max_table_mib allows" in error.message
    return False


def test_new_rows_beyond_the_limit_are_refused_and_nothing_is_lost() -> None:
    with joined(2 * MIB) as client:
        register(client, ROWS)

        batches = filled(client)

        assert 0.8 * 2 * MIB < batches * BATCH * 4 * 64 <= 2 * MIB
        known = np.arange(batches * BATCH)
        assert (pull(client, known) == -1.0).all()
        fresh = np.arange(BATCH) + batches * BATCH
        assert (pull(client, fresh) == 0.0).all()


def test_rows_that_exist_are_still_updated_at_the_limit() -> None:
    with joined(MIB) as client:
        register(client, ROWS)
        batches = filled(client)

        for _ in range(3):
            push(client, np.arange(batches * BATCH))

        assert (pull(client, np.arange(BATCH)) == -4.0).all()


def test_a_part_of_a_push_that_fits_is_not_applied_alone() -> None:
    with joined(MIB) as client:
        register(client, ROWS)
        batches = filled(client)

        with pytest.raises(TableError):
            push(client, np.arange((batches + 1) * BATCH))

        assert (pull(client, np.arange(batches * BATCH)) == -1.0).all()


def test_growing_rows_count_with_both_parts() -> None:
    with joined(MIB) as client:
        register(client, GROWING)

        assert 0 < filled(client, "growing") * BATCH * 4 * 8 <= MIB


def test_a_table_that_does_not_fit_is_refused_with_all_of_its_call() -> None:
    large = replace(TABLE, name="large", parameter="large", shape=(MIB,), size=MIB)
    with joined(2 * MIB) as client:
        with pytest.raises(TableError, match="'large' was refused, and none of this call") as full:
            register(client, TABLE, large)
        assert full.value.code is ErrorCode.TABLE_FULL

        register(client, ROWS)  # the tables of a smaller plan
        push(client, np.arange(BATCH))


def test_the_number_of_tables_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_TABLES", 2)
    tables = TableRegistry(1)
    tables.register([TABLE])

    with pytest.raises(TableError, match="2 tables, the most that a pserver has"):
        tables.register([replace(TABLE, name=name) for name in "ab"])

    assert len(tables) == 1


def test_without_a_limit_nothing_is_counted() -> None:
    limit = limits.MemoryLimit(limits.NO_LIMIT, lambda: pytest.fail("counted"))

    limit.check_rows([])
