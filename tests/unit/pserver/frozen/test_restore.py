"""Restores refuse what does not fit, and name table and field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import ErrorCode, TableError
from tests.support.frozen import (
    BASE,
    COUNTED,
    DENSE,
    SPARSE,
    apply,
    block_of,
    pushes_of,
    read,
    share_of,
    state_of,
    table_of,
)

PUSHES = pushes_of(2, 6)

OTHER_SPECS: dict[str, dict[str, Any]] = {
    "width": {"width": 4},
    "initializer": {"initializer": specs.Constant(0.0)},
    "optimizer": {"optimizer": specs.Adam()},
    "seed": {"seed": 8},
    "virtual_shards": {"virtual_shards": 64, "last_shard": 64},
    "padding_id": {"padding_id": 0},
    "admission": {"admission": COUNTED},
    "growth": {"growth": specs.Growth(2, 1.0)},
    "storage": {"storage": "float16"},
}


def frozen_of(table: Any) -> tuple[dict[str, Any], list[dict[str, np.ndarray]]]:
    with table.freeze() as frozen:
        return frozen.meta, list(frozen.pages())


def source_of(spec: specs.SparseTableSpec) -> Any:
    table = table_of(spec)
    apply(table, PUSHES)
    return frozen_of(table)


@pytest.mark.parametrize(("field", "changes"), OTHER_SPECS.items(), ids=OTHER_SPECS)
def test_a_table_of_another_spec_is_refused(field: str, changes: dict[str, Any]) -> None:
    table = table_of(replace(BASE, **changes))

    with pytest.raises(TableError, match=f"table 'emb' cannot be restored: {field} is") as refused:
        table.restore([source_of(BASE)])

    assert refused.value.code is ErrorCode.TABLE_SHAPE
    assert table.rows == 0


def test_pages_of_another_format_are_refused() -> None:
    for table, (meta, pages) in (
        (table_of(BASE), source_of(BASE)),
        (block_of(DENSE["adam"]), frozen_of(block_of(DENSE["adam"]))),
    ):
        with pytest.raises(TableError, match="cannot be restored: format is 2 in the pages"):
            table.restore([(meta | {"format": 2}, pages)])


def test_rates_regularizers_and_names_may_change() -> None:
    changes = {"learning_rate": specs.ConstantRate(9.0), "regularizer": specs.L2Decay(0.1)}
    table, twin = table_of(replace(BASE, name="other", **changes)), table_of(BASE)
    apply(twin, PUSHES)

    table.restore([source_of(BASE)])

    assert state_of(table) == state_of(twin)


def test_rows_that_keep_another_word_are_refused_though_they_are_of_one_length() -> None:
    table = table_of(replace(BASE, lifecycle=specs.Lifecycle(ttl_days=2)))
    assert table.layout.words == table_of(BASE).layout.words

    with pytest.raises(TableError, match="'emb' cannot be restored: seen_at of rows is -1"):
        table.restore([source_of(BASE)])


SPOILED: dict[str, Any] = {
    "rows of another type": lambda page: page | {"rows": page["rows"].view(np.int32)},
    "flat rows": lambda page: page | {"rows": page["rows"].reshape(-1)},
    "no shards": lambda page: {"rows": page["rows"]},
    "too few starts": lambda page: page | {"starts": page["starts"][:-1]},
    "starts that fall": lambda page: page | {"starts": page["starts"][::-1]},
    "starts beyond the end": lambda page: page | {"starts": page["starts"] * 2},
    "shards in disorder": lambda page: page | {"shards": page["shards"][::-1]},
    "nothing known": lambda page: {"lines": page["rows"]},
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_page_that_does_not_fit_is_refused(spoil: Any) -> None:
    meta, pages = source_of(BASE)
    table = table_of(BASE)

    with pytest.raises(TableError, match="table 'emb' cannot be restored"):
        table.restore([(meta, [spoil(page) for page in pages])])


def test_pages_of_pservers_without_common_shards_are_not_even_read() -> None:
    low = replace(BASE, last_shard=512)
    source, high = table_of(low), table_of(replace(BASE, first_shard=512))
    apply(source, [share_of(source, push) for push in PUSHES])
    meta, _ = frozen_of(source)

    def pages() -> Any:
        raise AssertionError("a page was read")
        yield

    high.restore([(meta, pages())])

    assert (high.rows, high.version) == (0, 0)


def test_pages_may_be_read_only_and_restored_part_by_part() -> None:
    meta, pages = source_of(SPARSE["counted"])
    table, twin = table_of(SPARSE["counted"]), table_of(SPARSE["counted"])
    apply(twin, PUSHES)
    for page in pages:
        for each in page.values():
            each.flags.writeable = False

    for page in reversed(pages):
        table.restore([(meta, [page])])

    assert state_of(table) == state_of(twin)


def test_a_delta_that_follows_another_freeze_is_refused() -> None:
    table, restored = table_of(BASE), table_of(BASE)
    table.track_changes()
    sources = []
    for number, push in enumerate(PUSHES[:3]):
        apply(table, [push])
        with table.freeze(is_delta=number > 0) as frozen:
            sources.append((frozen.meta, list(frozen.pages())))
            frozen.confirm()

    with pytest.raises(TableError, match=r"a delta continues version 2, but .* version 1"):
        restored.restore([sources[0], sources[2]])
    with pytest.raises(TableError, match=r"a delta continues version 1, but .* version None"):
        table_of(BASE).restore(sources[1:])


def test_a_chain_may_be_restored_part_by_part_in_either_order() -> None:
    spec = SPARSE["adagrad"]
    table, by_freeze, by_part = (table_of(spec) for _ in range(3))
    table.track_changes()
    sources = []
    for number, push in enumerate(PUSHES[:3]):
        apply(table, [push])
        with table.freeze(is_delta=number > 0) as frozen:
            sources.append((frozen.meta, list(frozen.pages())))
            frozen.confirm()

    for meta, pages in sources:
        for shards in ((0, 300), (300, 1024)):
            by_freeze.restore([(meta, [shards_of(page, *shards) for page in pages])])
    for shards in ((300, 1024), (0, 300)):
        by_part.restore(
            [(meta, [shards_of(page, *shards) for page in pages]) for meta, pages in sources]
        )

    assert state_of(by_freeze) == state_of(by_part) == state_of(table)


def shards_of(page: dict[str, np.ndarray], first: int, last: int) -> dict[str, np.ndarray]:
    """The rows of some virtual shards of a page, as a page."""
    kept = (page["shards"] >= first) & (page["shards"] < last)
    sizes = np.diff(page["starts"])
    starts = np.concatenate([[0], np.cumsum(sizes[kept])])
    return {"rows": page["rows"][np.repeat(kept, sizes)], "shards": page["shards"][kept]} | {
        "starts": starts.astype(np.int64)
    }


def test_a_restored_table_goes_on_with_deltas_of_its_own() -> None:
    table, again = table_of(BASE), table_of(BASE)
    base = source_of(BASE)
    table.restore([base])
    table.track_changes()
    apply(table, PUSHES[:2])
    with table.freeze(is_delta=True) as frozen:
        delta = frozen.meta, list(frozen.pages())

    again.restore([base, delta])

    ids = np.unique(np.concatenate([push.ids for push in PUSHES]))
    assert state_of(again) == state_of(table)
    assert read(again, ids) == read(table, ids)


# --- dense tables ---


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("parameter", {"parameter": "v"}),
        ("shape", {"shape": (10, 6)}),
        ("optimizer", {"optimizer": specs.Sgd()}),
        ("elements 40 to 59", {"offset": 20, "size": 40}),
        ("elements 0 to 59", {}),
    ],
)
def test_a_block_that_does_not_fit_is_refused(field: str, changes: dict[str, Any]) -> None:
    source = frozen_of(block_of(replace(DENSE["adam"], size=40)))
    table = block_of(replace(DENSE["adam"], **changes))

    with pytest.raises(TableError, match=f"table 'w' cannot be restored: {field} is"):
        table.restore([source] if changes else [])


def test_a_block_of_blocks_of_different_versions_has_the_highest() -> None:
    """A trainer that was killed has pushed to one pserver, and not to the other."""
    low, high = (replace(DENSE["adam"], offset=first, size=30) for first in (0, 30))
    sources = [frozen_of(block_of(low)), frozen_of(block_of(high, [np.ones(30, np.float32)]))]
    whole = block_of(DENSE["adam"])

    whole.restore(sources)

    assert whole.version == 1
    assert np.array_equal(whole.read()[0][30:], block_of(high, [np.ones(30, np.float32)]).read()[0])


@pytest.mark.parametrize("name", ["values", "state"])
def test_a_block_without_a_field_is_refused(name: str) -> None:
    meta, (page,) = frozen_of(block_of(DENSE["adam"]))

    with pytest.raises(TableError, match=f"{name} is missing in the pages"):
        block_of(DENSE["adam"]).restore([(meta, [{k: v for k, v in page.items() if k != name}])])
    with pytest.raises(TableError, match=f"{name} is float32 of shape"):
        block_of(DENSE["adam"]).restore([(meta, [page | {name: page[name][..., 1:]}])])
