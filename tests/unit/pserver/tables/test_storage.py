"""Tables with weights of 16 bits, and the facts of tables for STATUS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import TableError
from psrt.pserver.decisions.spec_rules import read_spec
from psrt.pserver.tables.sparse_table import SparseTable

SPEC = specs.SparseTableSpec(
    "emb", 8, specs.Uniform(-0.5, 0.5), specs.Adagrad(), specs.ConstantRate(0.1), 7
)
IDS = np.arange(5_000, dtype=np.int64) * 977
GRADIENTS = np.random.default_rng(1).standard_normal((len(IDS), 8), np.float32)


def trained(storage: str, stripes: int = 3) -> SparseTable:
    table = SparseTable(replace(SPEC, storage=storage), stripes)
    for _ in range(3):
        table.apply(table.route(IDS), GRADIENTS, 0.1)
    return table


def read(table: SparseTable) -> np.ndarray:
    out = np.empty(GRADIENTS.shape, np.float32)
    table.read(table.route(IDS), out)
    return out


@pytest.mark.parametrize("storage", specs.STORAGES)
def test_a_storage_is_part_of_the_canonical_spec(storage: str) -> None:
    spec = replace(SPEC, storage=storage)

    assert f'"storage":"{storage}"' in specs.to_json(spec)
    assert read_spec(specs.to_json(spec)) == spec


@pytest.mark.parametrize("storage", ["float64", "", None, 16])
def test_an_unknown_storage_is_refused(storage: object) -> None:
    spec = replace(SPEC, storage=storage)  # type: ignore[arg-type]

    with pytest.raises(TableError, match=r"its storage .* is none of float32, float16, bfloat16"):
        read_spec(specs.to_json(spec))


@pytest.mark.parametrize(("storage", "error"), [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_half_storage_is_near_float32_and_smaller(storage: str, error: float) -> None:
    whole, half = trained("float32"), trained(storage)

    np.testing.assert_allclose(read(half), read(whole), atol=error)
    assert half.layout.row_bytes == whole.layout.row_bytes - 16
    assert half.nbytes < whole.nbytes


@pytest.mark.parametrize("storage", specs.STORAGES)
def test_the_number_of_stripes_changes_no_bit_of_any_storage(storage: str) -> None:
    one, seven = trained(storage, 1), trained(storage, 7)

    assert read(one).tobytes() == read(seven).tobytes()


def test_a_table_describes_rows_load_storage_and_hot_ids() -> None:
    table = trained("bfloat16")
    for _ in range(5_000):
        table.read(table.route(IDS[:1]), np.empty((1, 8), np.float32))

    facts = table.describe()

    assert (facts["rows"], facts["width"], facts["storage"]) == (5_000, 8, "bfloat16")
    assert 0.2 < facts["load"] < 0.85
    assert [id_ for id_, _ in facts["hot_ids"]] == [0]


def test_a_big_request_lets_others_in_between_its_slices() -> None:
    table = SparseTable(replace(SPEC, width=4096, optimizer=specs.Adam()), 1)

    slices = list(table._stripes[0]._slices(1000))

    assert [part.start for part in slices[:3]] == [0, 85, 170]
    assert slices[-1].stop >= 1000
