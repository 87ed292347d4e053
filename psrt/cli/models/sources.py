"""Parameters and rows of a saved model, of a cut, or of running pservers, read piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psrt.core.errors import ConfigError, PsrtError
from psrt.core.hints import did_you_mean
from psrt.core.randomness import system_random
from psrt.core.types import F32, I64
from psrt.pserver.saved import SourceDense, SourceTable, open_state
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.methods import Method
from psrt.status import gathering
from psrt.trainer.models import MANIFEST, SavedModel, load

_PIECE_ELEMENTS = 4 << 20
_PAGE_ROWS = 1 << 16


@dataclass(frozen=True)
class DenseSource:
    """A dense parameter; `pieces()` yields its values (n,), or is None where they stay away."""

    name: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[F32]] | None


@dataclass(frozen=True)
class TableSource:
    """A sparse table; `pages()` yields ids (n,) and rows (n, width), each id once."""

    name: str
    pages: Callable[[], Iterator[tuple[I64, F32]]]


@dataclass(frozen=True)
class Source:
    """Parameters and tables of one place; `label` names it in a report."""

    label: str
    dense: list[DenseSource]
    tables: list[TableSource]

    def table(self, name: str) -> TableSource:
        """Return the table of a name, the only one for ""; raises `ConfigError`."""
        known = {table.name: table for table in self.tables}
        if name in known:
            return known[name]
        if not name and len(known) == 1:
            return self.tables[0]
        which = f"no table {name!r}" if name else "more than one table, or none"
        has = f"Its tables are {', '.join(known) or 'none'}."
        raise ConfigError(
            f"{self.label} has {which}.",
            hint=did_you_mean(name, known, has) if name else f"Name one with --table. {has}",
        )


@contextmanager
def opened(places: Sequence[str], timeout_s: float) -> Iterator[Source]:
    """Open endpoints of pservers, or one directory of a model or of cuts."""
    if all(map(_is_endpoint, places)):
        with _running(places, timeout_s) as source:
            yield source
    elif len(places) == 1:
        yield _saved(places[0])
    else:
        raise ConfigError(
            f"{' '.join(places)} are not endpoints, and only one directory is inspected at a time.",
            hint="Give one directory, or HOST:PORT of pservers.",
        )


def _is_endpoint(place: str) -> bool:
    try:
        split_endpoint(place)
    except PsrtError:
        return False
    return not Path(place).exists()


def _saved(place: str) -> Source:
    if (Path(place) / MANIFEST).exists():
        return _model(place, load(Path(place)))
    state = open_state(place)
    dense = [
        DenseSource(name, each.spec.shape, partial(_pieces, each))
        for name, each in state.dense.items()
    ]
    tables = [
        TableSource(name, partial(_saved_pages, table)) for name, table in state.sparse.items()
    ]
    return Source(state.label, dense, tables)


def _model(place: str, model: SavedModel) -> Source:
    dense = [
        DenseSource(name, values.shape, partial(_pieces_of, values.reshape(-1)))
        for name, values in model.dense.items()
    ]
    tables = [TableSource(name, table.pages) for name, table in model.tables.items()]
    return Source(f"model {place}", dense, tables)


def _pieces_of(values: F32) -> Iterator[F32]:
    for first in range(0, len(values), _PIECE_ELEMENTS):
        yield values[first : first + _PIECE_ELEMENTS]


def _pieces(dense: SourceDense) -> Iterator[F32]:
    for first in range(0, dense.spec.size, _PIECE_ELEMENTS):
        yield dense.values(first, min(first + _PIECE_ELEMENTS, dense.spec.size))


def _saved_pages(table: SourceTable) -> Iterator[tuple[I64, F32]]:
    for group in table.groups(0, table.spec.virtual_shards):
        yield group.rows.ids, group.weights(table.spec.width)


@contextmanager
def _running(endpoints: Sequence[str], timeout_s: float) -> Iterator[Source]:
    """The pservers of a running job; only rows of tables are read, which changes nothing there."""
    with gathering(endpoints, timeout_s) as (_, facts):
        found = facts.reached
        missing = [each.endpoint for each in facts.unreachable]
    sizes: dict[str, int] = {}
    names: dict[str, None] = {}
    for pserver in found:
        for table in pserver.tables:
            if table.rows is None:
                elements = sizes.get(table.parameter, 0) + table.size_bytes // 4
                sizes[table.parameter] = elements
            else:
                names[table.name] = None
    clients = [_client(pserver.endpoint) for pserver in found]
    at = f"job {found[0].job} on {', '.join(pserver.endpoint for pserver in found)}"
    without = f", without {', '.join(missing)}" if missing else ""
    try:
        yield Source(
            at + without,
            [DenseSource(name, (size,), None) for name, size in sizes.items()],
            [TableSource(name, partial(_rows_of_all, clients, name, timeout_s)) for name in names],
        )
    finally:
        for client in clients:
            client.close()


def _client(endpoint: str) -> Client:
    return Client(endpoint, 0, system_random.getrandbits(63), "grpc", pb.Hello())


def _rows_of_all(
    clients: Sequence[Client], table: str, timeout_s: float
) -> Iterator[tuple[I64, F32]]:
    for client in clients:
        yield from _rows_of(client, table, timeout_s)


def _rows_of(client: Client, table: str, timeout_s: float) -> Iterator[tuple[I64, F32]]:
    cursor = 0
    while True:
        asked = pb.Export(table=table, cursor=cursor, max_rows=_PAGE_ROWS)
        reply = client.call(Method.EXPORT, header=pb.Header(export=asked), timeout_s=timeout_s)
        ids, rows = reply.tensors
        yield ids, rows
        cursor = reply.header.export_reply.next_cursor
        if cursor == 0:
            return
