"""Tables of cuts and of saved models, walked by virtual shard: the rows that pservers had."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import ConfigError, StorageError
from psrt.pserver.frozen import Meta, Page
from psrt.pserver.saved import CutTable, differences, open_state
from psrt.pserver.saved.states import split_source
from psrt.storage.local_directory import LocalDirectory
from tests.support.cuts import write_cuts
from tests.support.frozen import (
    BASE,
    DENSE,
    SPARSE,
    apply,
    apply_share,
    block_of,
    pushes_of,
    state_of_block,
    table_of,
)
from tests.support.saved_cuts import cut_of

PUSHES = pushes_of(3, 4)


class Taken:
    """The pages of a freeze, taken at once: pushes go on before they are written."""

    def __init__(self, table: Any, is_delta: bool = False) -> None:
        with table.freeze(is_delta) as frozen:
            self.meta: Meta = frozen.meta
            self._pages: list[Page] = list(frozen.pages())
            frozen.confirm()

    def pages(self) -> Iterable[Page]:
        return self._pages

    def confirm(self) -> None: ...

    def close(self) -> None: ...


def whole(table: CutTable, group_bytes: int = 1 << 26) -> dict[int, bytes]:
    """Weights of all rows by id; no id comes twice."""
    found: dict[int, bytes] = {}
    for group in table.groups(0, 1024, group_bytes):
        weights = group.weights(table.spec.width)
        assert not found.keys() & set(group.rows.ids.tolist())
        found |= {i: row.tobytes() for i, row in zip(group.rows.ids.tolist(), weights, strict=True)}
    return found


def held(*tables: Any) -> dict[int, bytes]:
    """Weights of all rows that tables export, by id."""
    found: dict[int, bytes] = {}
    for table in tables:
        ids, rows, cursor = table.export(0, 1 << 20)
        while True:
            found |= {i: row.tobytes() for i, row in zip(ids.tolist(), rows, strict=True)}
            if cursor == 0:
                break
            ids, rows, cursor = table.export(cursor, 1 << 20)
    return found


@pytest.mark.parametrize("name", SPARSE)
def test_a_walk_returns_each_row_of_all_parts_once(name: str, tmp_path: Path) -> None:
    bounds = (0, 400, 1024)
    tables = [
        table_of(replace(SPARSE[name], first_shard=first, last_shard=last))
        for first, last in pairwise(bounds)
    ]
    apply_share(tables, PUSHES)

    cut = cut_of(tmp_path, [[], []], [[table.freeze()] for table in tables])

    table = cut.sparse["emb"]
    assert whole(table) == held(*tables)
    assert whole(table, group_bytes=2048) == held(*tables)


def test_the_newest_row_of_an_id_wins_and_dropped_rows_are_left_out(tmp_path: Path) -> None:
    table = table_of(SPARSE["adagrad"])
    table.track_changes()
    apply(table, PUSHES[:2])
    frozen = [Taken(table)]
    apply(table, PUSHES[2:])
    dropped = PUSHES[3].ids[:30]
    table.drop(dropped)
    frozen.append(Taken(table, is_delta=True))
    table.apply(table.route(dropped[:5]), np.ones((5, 5), np.float32), 0.1, None, 99)
    frozen.append(Taken(table, is_delta=True))

    cut = cut_of(tmp_path, [[]], [frozen])

    found = whole(cut.sparse["emb"], group_bytes=4096)
    assert found == held(table)
    assert set(dropped[:5].tolist()) <= found.keys()
    assert not set(dropped[5:].tolist()) & found.keys()


def test_rows_have_the_optimizer_state_and_the_counters_of_the_table(tmp_path: Path) -> None:
    table = table_of(SPARSE["with a life"])
    apply(table, PUSHES)

    cut = cut_of(tmp_path, [[]], [[table.freeze()]])

    with cut.sparse["emb"].walk(0, 1024) as walk:
        group = walk.rows(0, 1024)
    assert [*group.rows.counters] == ["version", "updates", "seen", "shows", "clicks"]
    assert group.rows.state.shape == (len(group.rows.ids), 5)
    assert (group.rows.updates >= 1).all()
    assert (group.rows.seen == 480_000).all()
    pushed = {
        int(i): int(n) for i, n in zip(*np.unique(all_ids(), return_counts=True), strict=True)
    }
    assert dict(zip(group.rows.ids.tolist(), group.rows.updates.tolist(), strict=True)) == pushed


def all_ids() -> np.ndarray:
    return np.concatenate([push.ids for push in PUSHES])


def test_grown_rows_have_the_state_of_their_long_part(tmp_path: Path) -> None:
    table = table_of(SPARSE["growing halves"])
    apply(table, PUSHES)

    cut = cut_of(tmp_path, [[]], [[table.freeze()]])

    with cut.sparse["emb"].walk(0, 1024) as walk:
        group = walk.rows(0, 1024)
    assert group.long is not None
    assert 0 < len(group.long.ids) < len(group.rows.ids)
    assert cut.sparse["emb"].state_words == (group.rows.state.shape[1], group.long.state.shape[1])


@pytest.mark.parametrize("bounds", [(0, 60), (0, 25, 60), (0, 7, 8, 60)])
def test_elements_of_a_dense_parameter_are_read_from_any_blocks(
    bounds: tuple[int, ...], tmp_path: Path
) -> None:
    spec = DENSE["adam"]
    gradients = np.random.default_rng(1).standard_normal((2, 60), np.float32)
    blocks = [
        block_of(
            replace(spec, name=f"w.block{first}", offset=first, size=last - first),
            [gradient[first:last] for gradient in gradients],
        )
        for first, last in pairwise(bounds)
    ]
    expected, state, version = state_of_block(block_of(spec, gradients))

    dense = cut_of(tmp_path, [[block.freeze()] for block in blocks], [[] for _ in blocks]).dense[
        "w"
    ]

    assert dense.values(0, 60).tobytes() == expected
    assert dense.values(6, 31).tobytes() == expected[4 * 6 : 4 * 31]
    assert dense.state(0, 60).tobytes() == state
    assert (dense.version, dense.vectors) == (version, 2)


def test_a_damaged_file_is_named_by_a_walk_and_by_a_parameter(tmp_path: Path) -> None:
    write_cuts(LocalDirectory(tmp_path), 1)
    for name in ("table-0", "dense"):
        path = tmp_path / "cut-00000001" / "part-1" / f"{name}.arrays"
        data = bytearray(path.read_bytes())
        data[data.index(b'"arrays"') + 300] ^= 1
        path.write_bytes(data)
    state = open_state(str(tmp_path))

    with pytest.raises(StorageError, match=r"cut-00000001/part-1/table-0\.arrays is damaged"):
        list(state.sparse["emb"].groups(0, 1024))
    with pytest.raises(StorageError, match=r"cut-00000001/part-1/dense\.arrays is damaged"):
        state.dense["w"].values(0, 60)


def test_a_source_names_a_directory_and_perhaps_a_cut() -> None:
    assert split_source("cuts#12") == ("cuts", "12")
    assert split_source("s3://bucket/cuts#latest") == ("s3://bucket/cuts", "latest")
    assert split_source("cuts#of-monday") == ("cuts#of-monday", "")


def test_a_directory_that_holds_nothing_saved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds neither cuts nor a saved model"):
        open_state(str(tmp_path))


# --- differences ----------------------------------------------------------------------------------


def test_differences_count_rows_and_measure_weights(tmp_path: Path) -> None:
    table = table_of(BASE)
    apply(table, PUSHES[:2])
    before = cut_of(tmp_path / "a", [[]], [[Taken(table)]])
    was = held(table)
    apply(table, PUSHES[2:])
    table.drop(PUSHES[0].ids[:10])
    after = cut_of(tmp_path / "b", [[]], [[Taken(table)]])
    now = held(table)

    (found,) = differences(before, after)

    both = sorted(was.keys() & now.keys())
    change = np.array([np.frombuffer(now[i], "f4") for i in both], np.float64)
    change -= np.array([np.frombuffer(was[i], "f4") for i in both])
    assert (found.name, found.kind, found.state) == ("emb", "sparse", "changed")
    assert found.added == len(now.keys() - was.keys()) > 0
    assert found.removed == len(was.keys() - now.keys()) > 0
    assert (found.common, found.changed) == (len(both), sum(was[i] != now[i] for i in both))
    assert found.largest == np.abs(change).max()
    assert found.mean == pytest.approx(np.abs(change).mean(), rel=1e-12)
    assert found.norm == pytest.approx(np.sqrt(np.square(change).sum()), rel=1e-12)


def test_parameters_of_one_cut_only_and_of_other_shapes_are_named(tmp_path: Path) -> None:
    w, reshaped = DENSE["sgd"], replace(DENSE["sgd"], shape=(6, 10))
    other = replace(w, name="v", parameter="v")
    wide = replace(BASE, width=7)
    before = cut_of(
        tmp_path / "a",
        [[block_of(w).freeze()]],
        [[filled(BASE).freeze(), filled(BASE, "x").freeze()]],
    )
    after = cut_of(
        tmp_path / "b",
        [[block_of(reshaped).freeze(), block_of(other).freeze()]],
        [[filled(wide).freeze(), filled(BASE, "y").freeze()]],
    )

    found = {each.name: each for each in differences(before, after)}

    assert {name: each.state for name, each in found.items()} == {
        "v": "added",
        "w": "reshaped",
        "emb": "reshaped",
        "x": "removed",
        "y": "added",
    }
    assert (found["emb"].common, found["emb"].changed) == (3, 0)
    assert (found["x"].removed, found["y"].added, found["v"].added) == (3, 3, 60)


def filled(spec: Any, name: str = "emb") -> Any:
    """A table with three rows."""
    table = table_of(replace(spec, name=name))
    table.apply(table.route(np.arange(3)), np.ones((3, spec.width), np.float32), 0.1, None, 1)
    return table


def test_equal_cuts_have_no_differences(tmp_path: Path) -> None:
    table = table_of(SPARSE["growing"])
    apply(table, PUSHES)
    before = cut_of(tmp_path / "a", [[block_of(DENSE["adam"]).freeze()]], [[Taken(table)]])
    after = cut_of(tmp_path / "b", [[block_of(DENSE["adam"]).freeze()]], [[Taken(table)]], 2)

    assert [(each.state, each.norm) for each in differences(before, after)] == [("equal", 0.0)] * 2
