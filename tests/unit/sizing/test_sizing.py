"""Size of a cluster: bytes, links and cores of pservers, and their least number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import ConfigError
from psrt.core.precision import WirePrecision
from psrt.core.quantities import bytes_per_s, count, format_bytes, format_rate, size_bytes
from psrt.core.specs import (
    Adam,
    Admission,
    CommunicationMode,
    Constant,
    ConstantRate,
    CountFilter,
    Growth,
    Lifecycle,
    Optimizer,
    Sgd,
    ShowClick,
    SparseTableSpec,
)
from psrt.core.specs.modes import Async, Geo, HalfAsync, Ssp, Sync
from psrt.graph.program import Parameter
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.pserver.serving import id_list_cache
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.two_part_table import TwoPartTable
from psrt.sizing import concerns, footprint
from psrt.sizing.footprint import held_footprint, row_bytes, sparse_footprint
from psrt.sizing.loads import PROCESS_BYTES, Workload
from psrt.sizing.sizing import Limits, Sizing, size
from psrt.sizing.traffic import LINK_EFFICIENCY, TableUse, dense_wire_bytes

DENSE_ELEMENTS, WIDTH, DISTINCT = 1 << 20, 16, 1000.0
ROOMY = Limits(memory_bytes=1 << 50, link_bytes_per_s=1e15, cores=1 << 20, stripes=16)
TABLE = SparseTableSpec("rows", WIDTH, Constant(), Sgd(), ConstantRate(0.1), seed=1)


def parameter(name: str, *shape: int, sparse: bool = False) -> Parameter:
    return Parameter(
        name,
        shape,
        initializer=Constant(),
        seed=1,
        sparse=sparse,
        distributed=sparse,
        optimizer=Sgd(),
        learning_rate=ConstantRate(0.1),
    )


PARAMETERS = [parameter("w", 1024, 1024), parameter("rows", 10**6, WIDTH, sparse=True)]


def plan_of(pservers: int) -> PartitionPlan:
    return build_plan(PARAMETERS, [f"p{number}:1" for number in range(pservers)])


def workload(mode: CommunicationMode | None = None, **changes: Any) -> Workload:
    made = Workload(mode or Sync(), 8, 10.0, (TableUse(TABLE, 10**6, 2 * DISTINCT, DISTINCT),))
    return replace(made, **changes)


def sized(limits: Limits, work: Workload | None = None, pservers: int = 0) -> Sizing:
    return size(plan_of, work or workload(), limits, pservers)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "width", "storage", "header", "weights", "state"),
    [
        (Sgd(), 16, "float32", 16, 64, 0),
        (Adam(), 16, "float32", 16, 64, 128),
        (Adam(), 16, "bfloat16", 16, 32, 128),
        (Sgd(), 1, "float32", 16, 4, 4),  # rows are a whole number of 8 bytes
    ],
)
def test_a_row_is_header_weights_and_state(
    optimizer: Optimizer, width: int, storage: str, header: int, weights: int, state: int
) -> None:
    spec = replace(TABLE, optimizer=optimizer, width=width, storage=storage)

    row = row_bytes(spec)

    assert (row.header, row.weights, row.state) == (header, weights, state)
    assert row.total == SparseTable(spec, stripes=1).layout.row_bytes


@pytest.mark.parametrize("rows", [100, 5_000, 20_000, 100_000])
def test_a_table_reports_the_predicted_size(rows: int) -> None:
    table = SparseTable(TABLE, stripes=2)
    ids = np.random.default_rng(rows).permutation(10**6)[:rows]
    for part in np.array_split(ids, 1 + rows // 2_000):
        table.apply(table.route(part), np.zeros((len(part), WIDTH), np.float32), 0.1)

    predicted = sparse_footprint(TABLE, rows, stripes=2).total_bytes

    assert table.nbytes == pytest.approx(predicted, rel=0.03)


def test_rows_that_start_short_are_counted_as_grown() -> None:
    spec = replace(TABLE, growth=Growth(embed_width=1, embedx_threshold=0.0))
    table, ids = TwoPartTable(spec, stripes=1), np.arange(3_000)
    gradients, counts = np.zeros((3_000, WIDTH), np.float32), np.ones((3_000, 2), np.float32)
    table.apply(table.route(ids), gradients, 0.1, counts)

    predicted = sparse_footprint(spec, 3_000, stripes=1).total_bytes

    assert table.nbytes == pytest.approx(predicted, rel=0.03)


@pytest.mark.parametrize(
    ("admission", "waits"),
    [
        (None, False),
        (CountFilter(count=1, waiting_ids=10_000), False),
        (CountFilter(count=3, waiting_ids=10_000), True),
        (ShowClick("show", "click", threshold=0.0, waiting_ids=10_000), False),
        (ShowClick("show", "click", threshold=0.5, waiting_ids=10_000), True),
    ],
)
def test_ids_that_wait_are_counted_as_a_pserver_sets_memory_aside(
    admission: Admission | None, waits: bool
) -> None:
    spec = replace(TABLE, admission=admission, first_shard=0, last_shard=256)

    predicted = held_footprint(spec, 0, stripes=2, fraction=0.25)

    assert predicted.waiting_bytes == SparseTable(spec, stripes=2).waiting_bytes
    assert bool(predicted.waiting_bytes) == waits
    assert predicted.total_bytes == predicted.table_bytes + predicted.waiting_bytes


@pytest.mark.parametrize("growth", [None, Growth(embed_width=1)])
def test_rows_beyond_max_bytes_are_not_counted(growth: Growth | None) -> None:
    spec = replace(TABLE, lifecycle=Lifecycle(max_bytes=100 << 20), growth=growth)

    capped = held_footprint(spec, 10**9, stripes=16, fraction=0.25)
    small = held_footprint(spec, 1000, stripes=16, fraction=0.25)

    assert 24 * 2**20 < capped.table_bytes <= 25 * 2**20
    assert small == sparse_footprint(spec, 250, stripes=16)


def test_memory_of_a_pserver_has_what_its_tables_options_say() -> None:
    admission = CountFilter(count=2, waiting_ids=10**9)
    bounded = replace(TABLE, admission=admission, lifecycle=Lifecycle(max_bytes=1 << 20))
    work = workload(uses=(TableUse(bounded, 10**9, 2 * DISTINCT, DISTINCT),))

    (load,) = sized(ROOMY, work, pservers=1).loads

    (table,) = load.sparse
    assert load.rows == table.rows < 10**5
    assert load.memory_bytes > table.waiting_bytes >= 12 * 10**9


def test_what_pservers_keep_of_ids_is_their_own_limit() -> None:
    assert footprint.ID_LISTS_BYTES == id_list_cache.LIMIT_BYTES


def test_dense_memory_is_values_state_and_copies() -> None:
    dense = sized(ROOMY, pservers=4).fullest.dense

    assert (dense.values_bytes, dense.state_bytes) == (DENSE_ELEMENTS, 0)  # a quarter of 4 bytes
    assert dense.copies_bytes == 0  # nobody still reads when a round closes
    alone = sized(ROOMY, workload(Async()), pservers=4).fullest.dense
    assert alone.copies_bytes == alone.values_bytes


# --- traffic --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "calls", "dense_up", "dense_down", "connections"),
    [
        (Sync(), 1, 1, 1, 1),
        (HalfAsync(), 1, 1, 1, 1),
        (Async(), 2, 1, 1, 2),
        (Async(max_merge_var_num=4, min_send_grad_num_before_recv=6), 1.25, 1 / 4, 1 / 8, 3),
        (Ssp(), 4, 1, 1, 3),
        (Geo(50), 1 / 50, 1 / 50, 1 / 50, 1),
    ],
)
def test_modes_differ_in_how_often_they_call_and_send_dense_parameters(
    mode: CommunicationMode, calls: float, dense_up: float, dense_down: float, connections: int
) -> None:
    work = replace(workload(mode), uses=())

    found = sized(ROOMY, work, pservers=1)

    load, trainer, dense_bytes = found.loads[0], found.trainer, 4 * DENSE_ELEMENTS
    assert trainer.requests == pytest.approx(calls)
    assert trainer.up_bytes == pytest.approx(dense_up * dense_bytes, rel=0.01)
    assert trainer.down_bytes == pytest.approx(dense_down * dense_bytes, rel=0.01)
    assert load.connections == 8 * connections
    assert load.requests_per_s == pytest.approx(8 * 10.0 * calls)


def test_rows_travel_with_the_bytes_of_their_precision() -> None:
    def down(precision: str) -> float:
        use = TableUse(TABLE, 10**6, DISTINCT, DISTINCT, wire=precision)
        work = workload(uses=(use,), wire=WirePrecision("float16"))
        return sized(ROOMY, work, pservers=1).trainer.down_bytes - 2 * DENSE_ELEMENTS

    assert down("float32") == pytest.approx(64 * DISTINCT, rel=0.01)
    assert down("bfloat16") == pytest.approx(32 * DISTINCT, rel=0.01)
    assert down("int8") == pytest.approx((16 + 4) * DISTINCT, rel=0.01)
    assert dense_wire_bytes(2560, "int8") == 2560 + 10 * 4


def test_a_link_carries_what_all_trainers_send_and_what_protocols_add() -> None:
    found = sized(ROOMY, workload(trainers=20), pservers=1)

    up = found.trainer.up_bytes
    assert found.busiest.in_bytes_per_s == pytest.approx(20 * 10.0 * up / LINK_EFFICIENCY)


def test_geo_sends_the_distinct_rows_of_its_steps_and_hears_of_those_of_all_others() -> None:
    use = TableUse(TABLE, 10**6, DISTINCT, DISTINCT, growth=0.5)

    found = sized(ROOMY, workload(Geo(100), uses=(use,)), pservers=1).trainer

    dense = 4 * DENSE_ELEMENTS / 100
    pair = (8 + 64) * DISTINCT / 100
    assert found.up_bytes == pytest.approx(dense + pair * 100**0.5, rel=0.01)
    assert found.down_bytes == pytest.approx(dense + pair * 700**0.5, rel=0.01)


def test_no_more_rows_travel_than_there_are() -> None:
    use = TableUse(TABLE, 50_000, DISTINCT, DISTINCT)

    assert use.distinct_after(40) == 40 * DISTINCT
    assert use.distinct_after(1000) == 50_000


# --- how many -------------------------------------------------------------------------------------


def test_one_pserver_is_enough_where_nothing_is_scarce() -> None:
    found = sized(ROOMY)

    assert (found.pservers, set(found.least.values())) == (1, {1})


@pytest.mark.parametrize(
    ("limit", "scarce"),
    [
        ("memory", {"memory_bytes": 700 << 20}),
        ("network", {"link_bytes_per_s": 100e6}),
        ("cpu", {"cores": 1}),
    ],
)
def test_the_least_number_within_the_scarce_limit_is_found_and_the_limit_named(
    limit: str, scarce: dict[str, Any]
) -> None:
    use = TableUse(TABLE, 10**7, 2 * DISTINCT, 20 * DISTINCT)
    work = workload(HalfAsync(), uses=(use,), steps_per_s=20.0)
    limits = replace(ROOMY, **scarce)

    found = sized(limits, work)

    assert found.decided_by == limit
    assert found.pservers == found.least[limit] > 1
    assert found.used[limit] <= 1
    assert sized(limits, work, found.pservers - 1).used[limit] > 1


def test_calls_that_go_to_every_pserver_are_not_fewer_with_more_pservers() -> None:
    work = workload(trainers=1000)

    with pytest.raises(ConfigError, match=r"with 1024 pservers.*times its cpu") as raised:
        sized(replace(ROOMY, cores=8), work)

    assert "larger steps" in (raised.value.hint or "")


def test_a_given_number_is_used_and_its_shortage_is_reported() -> None:
    limits = replace(ROOMY, memory_bytes=PROCESS_BYTES, link_bytes_per_s=1e6)

    found = sized(limits, pservers=2)

    assert (found.pservers, found.decided_by) == (2, "")
    text = "\n".join(concerns.of_sizing(found))
    assert "times its memory" in text
    assert "times its network" in text
    assert "a trainer's own link" in text


def test_more_pservers_than_virtual_shards_are_refused_before_they_are_placed() -> None:
    def dispatcher(blocks: Any, endpoints: Any) -> list[str]:
        raise AssertionError("asked")

    def plan_of(pservers: int) -> PartitionPlan:
        endpoints = [f"p{number}:1" for number in range(pservers)]
        return build_plan(PARAMETERS, endpoints, dispatcher=dispatcher)

    with pytest.raises(ConfigError, match="cannot be shared among 100000 pservers"):
        size(plan_of, workload(), ROOMY, pservers=100_000)


def test_more_rows_than_stripes_hold_are_reported() -> None:
    work = workload(uses=(TableUse(TABLE, 3 * 10**9, DISTINCT, DISTINCT),))

    text = "\n".join(concerns.of_sizing(sized(ROOMY, work, pservers=1)))

    assert "3,000,000,000 rows of rows" in text
    assert "it has 16: raise stripes" in text
    assert not list(concerns.of_sizing(sized(ROOMY, work, pservers=2)))


def test_a_message_beyond_what_pservers_take_is_reported() -> None:
    use = TableUse(TABLE, 10**9, 2e7, 2e7)

    text = "\n".join(concerns.of_sizing(sized(ROOMY, workload(uses=(use,)), pservers=1)))

    assert "raise max_message_mib" in text


# --- evenness -------------------------------------------------------------------------------------


def test_dense_bytes_that_lie_on_one_pserver_are_reported() -> None:
    plan = build_plan(PARAMETERS, ["a:1", "b:1"], slice_var_up=False)

    (text,) = concerns.of_plan(plan)

    assert text.startswith("dense parameters are uneven: a:1 holds 4 MiB, b:1 0 B.")


@pytest.mark.parametrize("pservers", [1, 2, 7, 64])
def test_an_even_plan_is_no_concern(pservers: int) -> None:
    assert list(concerns.of_plan(plan_of(pservers))) == []


def test_virtual_shards_that_do_not_divide_are_reported() -> None:
    (text,) = concerns.of_plan(build_plan(PARAMETERS[1:], [f"p{n}:1" for n in range(700)]))

    assert "some pservers hold 2 virtual shards of every table, others 1" in text


# --- quantities -----------------------------------------------------------------------------------


def test_quantities_are_read_as_people_write_them() -> None:
    assert size_bytes("64GiB", "x") == 64 << 30
    assert size_bytes("1.5 kB", "x") == 1500
    assert bytes_per_s("10Gbit/s", "x") == 1.25e9
    assert bytes_per_s("100MB/s", "x") == 1e8
    assert (count("5M", "x"), count("1e9", "x"), count("12", "x")) == (5 * 10**6, 10**9, 12)


@pytest.mark.parametrize("text", ["", "64", "64 Gib", "GiB", "1.2.3GiB", "10Gbit/s", "-1GiB"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="pserver_memory"):
        size_bytes(text, "pserver_memory")


@pytest.mark.parametrize("text", ["10", "10Gbit", "64GiB", "5Q/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="link"):
        bytes_per_s(text, "link")


def test_quantities_are_reported_in_the_unit_that_fits() -> None:
    text = [format_bytes(n) for n in (0, 96, 1023, 1024, 21.04 * 1024, 3 * 2**30, 1023.99 * 2**20)]
    assert text == ["0 B", "96 B", "1,023 B", "1 KiB", "21.0 KiB", "3 GiB", "1.00 GiB"]
    assert [format_rate(n) for n in (1.25e9, 12_500, 1)] == ["10 Gbit/s", "100 kbit/s", "8 bit/s"]
