"""Tables of every kind with random pushes, and what they hold to the last bit, for freezes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psrt.core import specs
from psrt.core.errors import TableError
from psrt.kernels.tables.admission import AMOUNTS_AT, BUCKET
from psrt.kernels.tables.row_layout import ID_WORD
from psrt.pserver.tables.change_log import ChangeLog
from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.two_part_table import RowsTable, TwoPartTable
from tests.support.optimizer_formulas import CTR, OPTIMIZERS, ROW_WISE

WIDTH, SIZE, RATE, HOUR = 5, 60, 0.1, 480_000
BASE = specs.SparseTableSpec(
    "emb", WIDTH, specs.Uniform(-0.5, 0.5), specs.Sgd(), specs.ConstantRate(RATE), 7
)
LIFE = specs.Lifecycle(ttl_days=3, delete_score=0.1, decay=0.9)
COUNTED = specs.CountFilter(3, waiting_ids=1 << 12)

SPARSE: dict[str, specs.SparseTableSpec] = {
    **{
        name: replace(BASE, optimizer=each)
        for name, each in {**OPTIMIZERS, **CTR, **ROW_WISE}.items()
    },
    "of float16": replace(BASE, storage="float16", optimizer=specs.Adam()),
    "of bfloat16": replace(BASE, storage="bfloat16", optimizer=specs.Adagrad()),
    "of float16, all rows": replace(BASE, storage="float16", optimizer=specs.Adam(lazy=False)),
    "decaying": replace(BASE, optimizer=specs.Adam(), regularizer=specs.L2Decay(0.1)),
    "with padding": replace(BASE, padding_id=3),
    "counted": replace(BASE, admission=COUNTED, optimizer=specs.Adagrad()),
    "crowded": replace(BASE, admission=specs.CountFilter(4, waiting_ids=64)),
    "counted, all rows": replace(BASE, admission=COUNTED, optimizer=specs.AdamW(lazy=False)),
    "by score": replace(BASE, admission=specs.ShowClick("s", "c", 1.5, waiting_ids=1 << 12)),
    "drawn": replace(BASE, admission=specs.Probability(0.6)),
    "with a life": replace(BASE, lifecycle=LIFE, optimizer=specs.Adagrad()),
    "growing": replace(BASE, growth=specs.Growth(2, 0.3)),
    "growing by ctr": replace(BASE, growth=specs.Growth(1, 0.3), optimizer=specs.CtrAdagrad()),
    "growing halves": replace(
        BASE, growth=specs.Growth(2, 0.3), storage="float16", optimizer=specs.Adam()
    ),
    "growing, all rows": replace(
        BASE, growth=specs.Growth(2, 0.3), optimizer=specs.Adam(lazy=False), admission=COUNTED
    ),
}
DENSE = {
    name: specs.DenseTableSpec(
        *("w", "w", (12, 5), 0, SIZE), *(specs.Normal(0.0, 0.1), each, specs.ConstantRate(RATE), 11)
    )
    for name, each in {**OPTIMIZERS, **CTR, **ROW_WISE}.items()
}


@dataclass(frozen=True)
class Push:
    """One update; `now` is the time of the job."""

    ids: np.ndarray
    gradients: np.ndarray
    counts: np.ndarray
    now: int


def pushes_of(seed: int, count: int, batch: int = 120, known: int = 500) -> list[Push]:
    """Pushes of distinct ids, most of them known after a while and some always new."""
    rng = np.random.default_rng(seed)
    old = np.concatenate([rng.integers(-(2**63), 2**63 - 1, known, np.int64), np.arange(5)])
    found = []
    for number in range(count):
        new = rng.integers(-(2**63), 2**63 - 1, batch // 6, np.int64)
        ids = np.concatenate([rng.choice(old, batch - len(new), replace=False), new])
        counts = rng.integers(0, 4, (batch, 2)).astype(np.float32)
        gradients = rng.standard_normal((batch, WIDTH), np.float32)
        found.append(Push(ids, gradients, counts, 3 * number + 1))
    return found


def table_of(spec: specs.SparseTableSpec, stripes: int = 3, logs: bool = False) -> RowsTable:
    if spec.growth is not None:
        return TwoPartTable(spec, stripes, lambda: HOUR)
    return SparseTable(spec, stripes, ChangeLog() if logs else None, lambda: HOUR)


def share_of(table: RowsTable, push: Push) -> Push:
    """The part of a push that goes to a pserver of some virtual shards."""
    mine = np.array([holds(table, each) for each in push.ids])
    return Push(push.ids[mine], push.gradients[mine], push.counts[mine], push.now)


def holds(table: RowsTable, row_id: np.int64) -> bool:
    try:
        table.route(np.array([row_id]))
    except TableError:
        return False
    return True


def apply(table: RowsTable, pushes: Iterable[Push]) -> None:
    for push in pushes:
        table.apply(table.route(push.ids), push.gradients, RATE, push.counts, push.now)


def apply_share(tables: Iterable[RowsTable], pushes: Iterable[Push]) -> None:
    """Apply pushes to the pservers of a table; all of them get each, as those of all rows need."""
    for push in pushes:
        for table in tables:
            apply(table, [share_of(table, push)])


def read(table: RowsTable, ids: np.ndarray) -> bytes:
    out = np.empty((len(ids), table.spec.width), np.float32)
    table.read(table.route(ids), out)
    return out.tobytes()


def parts_of(table: RowsTable) -> list[SparseTable]:
    return [table._short, table._long] if isinstance(table, TwoPartTable) else [table]


def raw_rows(table: SparseTable) -> dict[int, bytes]:
    """All rows by id, with headers and state."""
    found = {}
    for stripe in table._stripes:
        rows = stripe._store.slab.rows[: stripe.rows]
        ids = rows.view(np.int64)[:, ID_WORD // 2].tolist()
        found.update({row_id: row.tobytes() for row_id, row in zip(ids, rows, strict=True)})
    return found


def waiting_ids(table: SparseTable) -> dict[int, float]:
    """Ids that wait for admission, with what they have gathered."""
    found = {}
    for stripe in table._stripes:
        if stripe._waiting is not None:
            records = stripe._waiting._records
            ids = records.view(np.int64)[:, :BUCKET].reshape(-1)
            amounts = records[:, AMOUNTS_AT:].reshape(-1)
            pairs = zip(ids[amounts > 0].tolist(), amounts[amounts > 0].tolist(), strict=True)
            found.update(pairs)
    return found


def state_of(*tables: RowsTable) -> Any:
    """All that tables of one spec hold together, as pservers of other shards would hold it."""
    found: list[Any] = []
    for number in range(len(parts_of(tables[0]))):
        parts = [parts_of(table)[number] for table in tables]
        rows, waiting = dict[int, bytes](), dict[int, float]()
        for part in parts:
            rows |= raw_rows(part)
            waiting |= waiting_ids(part)
        found += [rows, waiting, sum(part.refused for part in parts)]
        found += [max(part.version for part in parts), max(part.time(0) for part in parts)]
    return found


def block_of(spec: specs.DenseTableSpec, pushes: Iterable[np.ndarray] = ()) -> DenseTable:
    table = DenseTable(spec)
    for gradient in pushes:
        table.apply(gradient, RATE)
    return table


def state_of_block(table: DenseTable) -> tuple[bytes, bytes, int]:
    values, version = table.read()
    return values.tobytes(), table._move.state.now().tobytes(), version


def ids_of_pages(pages: Iterable[dict[str, np.ndarray]], name: str = "rows") -> list[int]:
    """The ids of all rows, in the order in which they were handed out."""
    of_pages = (page[name].view(np.int64)[:, ID_WORD // 2] for page in pages if name in page)
    return [int(row_id) for ids in of_pages for row_id in ids]


def in_between(pages: Iterator[Any], table: RowsTable, pushes: list[Push]) -> list[Any]:
    """All pages, with a push before each of them while there are any."""
    found, waiting = [], list(pushes)
    while True:
        apply(table, waiting[:1])
        del waiting[:1]
        page = next(pages, None)
        if page is None:
            apply(table, waiting)
            return found
        found.append(page)
