"""Warm starts from each kind of source: what a job begins with, on any number of pservers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import ConfigError, ErrorCode, PsrtError
from psrt.core.specs import Adagrad, Adam, SparseTableSpec, TableSpec, WarmRule, to_json
from psrt.kernels.tables import fill_rows
from psrt.pserver.tables import DenseTable
from psrt.pserver.warm import WarmTables
from tests.support.frozen import (
    BASE,
    DENSE,
    RATE,
    SPARSE,
    Push,
    parts_of,
    pushes_of,
    raw_rows,
    share_of,
)
from tests.support.saved_cuts import cut_of_pservers
from tests.support.warm_starts import rows_of, tables_on, values_of, warm_from, write_model

PUSHES = pushes_of(5, 3)
W = replace(DENSE["adagrad"], name="w")
EMB = replace(BASE, optimizer=Adagrad(), initializer=specs.Uniform(-0.3, 0.3))
JOB: Sequence[TableSpec] = (W, EMB)

Save = Callable[..., Path]


def push(pservers: Sequence[Sequence[Any]], pushes: Sequence[Push]) -> None:
    """Update every table; a dense parameter by a gradient of its whole."""
    rng = np.random.default_rng(len(pushes))
    for each in pushes:
        gradient = rng.standard_normal(60, np.float32)
        for table in (table for tables in pservers for table in tables):
            spec = table.spec
            if isinstance(table, DenseTable):
                table.apply(gradient[spec.offset : spec.offset + spec.size], RATE)
            else:
                mine = share_of(table, each)
                gradients = np.ascontiguousarray(mine.gradients[:, : spec.width])
                table.apply(table.route(mine.ids), gradients, RATE, mine.counts, each.now)


@pytest.fixture(params=["cut", "model"])
def save(request: pytest.FixtureRequest, tmp_path: Path) -> Save:
    """Train tables of some specs on two pservers and save them; returns the source's directory."""

    def saved(job: Sequence[TableSpec] = JOB) -> Path:
        trained = tables_on(2, job)
        push(trained, PUSHES)
        if request.param == "cut":
            cut_of_pservers(tmp_path / "saved", *trained)
        else:
            write_model(tmp_path / "saved", job, trained)
        return tmp_path / "saved"

    return saved


def trained(job: Sequence[TableSpec] = JOB) -> list[list[Any]]:
    found = tables_on(2, job)
    push(found, PUSHES)
    return found


def bits(rows: dict[int, np.ndarray]) -> dict[int, bytes]:
    return {row_id: row.tobytes() for row_id, row in rows.items()}


@pytest.mark.parametrize("pservers", [1, 3])
def test_a_job_begins_with_the_bits_of_the_source_on_any_number_of_pservers(
    save: Save, pservers: int
) -> None:
    begun = tables_on(pservers, JOB, warm_from(save(), strict=True))

    assert values_of(begun, "w").tobytes() == values_of(trained(), "w").tobytes()
    assert bits(rows_of(begun, "emb")) == bits(rows_of(trained(), "emb"))


def test_another_optimizer_keeps_the_weights_and_begins_its_state_anew(save: Save) -> None:
    job = replace(W, optimizer=Adam()), replace(EMB, optimizer=Adam())

    begun = tables_on(1, job, warm_from(save()))

    assert values_of(begun, "w").tobytes() == values_of(trained(), "w").tobytes()
    assert bits(rows_of(begun, "emb")) == bits(rows_of(trained(), "emb"))
    # from here on it is a table that was given these weights: its first step is Adam's first
    before = values_of(begun, "w").copy()
    begun[0][0].apply(np.ones(60, np.float32), 0.5)
    assert np.allclose(before - values_of(begun, "w"), 0.5, atol=1e-5)
    assert begun[0][0].version == 1
    ids = PUSHES[0].ids[:4]
    rows = rows_of(begun, "emb")
    begun[0][1].apply(begun[0][1].route(ids), np.ones((4, 5), np.float32), 0.5)
    later = rows_of(begun, "emb")
    assert np.allclose([rows[i] - later[i] for i in ids.tolist()], 0.5, atol=1e-5)


def test_a_wider_table_keeps_the_first_columns_and_initializes_the_others(save: Save) -> None:
    wide = replace(EMB, width=8, seed=99)

    begun = tables_on(2, (W, wide), warm_from(save()))

    found, was = rows_of(begun, "emb"), rows_of(trained(), "emb")
    assert found.keys() == was.keys()
    ids = np.array(sorted(was), np.int64)
    initial = np.empty((len(ids), 8), np.float32)
    fill_rows(wide.initializer, wide.seed, ids, initial)
    for row_id, first in zip(ids.tolist(), initial, strict=True):
        assert found[row_id][:5].tobytes() == was[row_id].tobytes()
        assert found[row_id][5:].tobytes() == first[5:].tobytes()


def test_parameters_are_renamed_by_name_and_by_pattern(save: Save) -> None:
    renamed = (
        replace(W, name="tower_1.weights", parameter="tower_1.weights"),
        replace(EMB, name="item_emb"),
    )
    other = save((replace(W, name="t1.w", parameter="t1.w"), EMB))
    rules = (
        WarmRule(r"tower_(\d)\.weights", is_pattern=True, source=r"t\1.w"),
        WarmRule("item_emb", source="emb"),
    )

    begun = tables_on(2, renamed, warm_from(other, *rules, strict=True))

    assert values_of(begun, "tower_1.weights").tobytes() == values_of(trained(), "w").tobytes()
    assert bits(rows_of(begun, "item_emb")) == bits(rows_of(trained(), "emb"))


def test_a_rule_selects_a_subset(save: Save) -> None:
    warm = warm_from(save(), WarmRule("emb", skip=True), unused=("em.",), strict=True)

    begun = tables_on(2, JOB, warm)

    assert values_of(begun, "w").tobytes() == values_of(trained(), "w").tobytes()
    assert rows_of(begun, "emb") == {}


def test_a_dense_parameter_of_another_shape_needs_a_rule_and_takes_what_both_have(
    save: Save,
) -> None:
    source, grown = save(), replace(W, shape=(15, 4), size=60)

    with pytest.raises(ConfigError, match="w has another shape than w: 12 × 5 → 15 × 4") as refused:
        tables_on(2, (grown, EMB), warm_from(source))
    begun = tables_on(3, (grown, EMB), warm_from(source, WarmRule("w", resize=True)))

    assert refused.value.code is ErrorCode.WARM_START_MISFIT
    expected = values_of(tables_on(1, (grown, EMB)), "w").reshape(15, 4).copy()
    expected[:12] = values_of(trained(), "w").reshape(12, 5)[:, :4]
    assert values_of(begun, "w").tobytes() == expected.tobytes()


def test_a_narrower_table_needs_a_rule(save: Save) -> None:
    source, narrow = save(), replace(EMB, width=3)

    with pytest.raises(ConfigError, match="emb has another shape than emb: 5 → 3 columns"):
        tables_on(2, (W, narrow), warm_from(source))
    begun = tables_on(2, (W, narrow), warm_from(source, WarmRule("emb", resize=True)))

    was = rows_of(trained(), "emb")
    assert bits(rows_of(begun, "emb")) == {i: row[:3].tobytes() for i, row in was.items()}


def test_a_strict_mismatch_is_one_error_with_all_names(save: Save) -> None:
    job = (replace(W, name="v", parameter="v"), replace(EMB, name="users"), replace(EMB, width=9))

    with pytest.raises(ConfigError) as refused:
        tables_on(2, job, warm_from(save(), strict=True))

    assert refused.value.code is ErrorCode.WARM_START_MISFIT
    assert (
        "missing in the source: v, users; not used: w; reshaped: emb: 5 → 9 columns. Nothing was"
    ) in refused.value.message


def test_what_does_not_match_is_reported_by_name(save: Save) -> None:
    job = replace(W, name="v", parameter="v"), replace(EMB, width=9)

    report = WarmTables().open(to_json(warm_from(save())), job)

    head, *rest = report.splitlines()
    assert head.startswith("begins with ")
    assert head.endswith(": 1 of 2 parameters, 0 with optimizer state")
    assert rest == ["  missing in the source: v", "  not used: w", "  reshaped: emb: 5 → 9 columns"]


def test_a_source_without_any_parameter_of_the_job_is_refused(save: Save) -> None:
    with pytest.raises(ConfigError, match=r"no parameter of the job is in it; missing .*: u, v"):
        tables_on(1, (replace(W, parameter="u"), replace(EMB, name="v")), warm_from(save()))


def test_rules_that_match_nothing_are_refused(save: Save) -> None:
    with pytest.raises(ConfigError, match="no parameter of the job matches the rule of emd"):
        tables_on(1, JOB, warm_from(save(), WarmRule("emd", source="emb")))


def test_a_dense_parameter_does_not_begin_with_a_table(save: Save) -> None:
    with pytest.raises(ConfigError, match="w is dense, but emb is a sparse table"):
        tables_on(1, JOB, warm_from(save(), WarmRule("w", source="emb")))


def test_a_damaged_file_is_refused_by_its_name(save: Save) -> None:
    source = save()
    found = sorted([*source.rglob("*.npy"), *source.rglob("*.arrays")])
    assert len(found) >= 4
    for path in found:
        data = bytearray(path.read_bytes())
        changed = len(data) - (1 if path.suffix == ".npy" else 40)  # an array, or the trailer
        data[changed] ^= 1
        path.write_bytes(data)

        with pytest.raises(PsrtError, match=path.name) as refused:
            tables_on(1, JOB, warm_from(source))
        assert refused.value.code in (ErrorCode.FILE_DAMAGED, ErrorCode.MODEL_UNREADABLE)

        data[changed] ^= 1
        path.write_bytes(data)
    tables_on(1, JOB, warm_from(source))


# --- cuts have the state of optimizers ------------------------------------------------------------


@pytest.mark.parametrize("name", SPARSE)
def test_with_equal_optimizers_training_goes_on_with_their_state(name: str, tmp_path: Path) -> None:
    job = replace(DENSE["adam"], name="w"), SPARSE[name]
    whole = tables_on(2, job)
    push(whole, PUSHES)
    cut_of_pservers(tmp_path, *whole)

    begun = tables_on(1, job, warm_from(tmp_path, strict=True))

    assert without_waiting(begun[0][1:]) == without_waiting([tables[1] for tables in whole])
    if getattr(SPARSE[name], "admission", None) is None:
        for tables in (whole, begun):
            push(tables, PUSHES[:2])
        assert without_waiting(begun[0][1:]) == without_waiting([tables[1] for tables in whole])
        assert times_of(begun[0][1:]) == times_of([tables[1] for tables in whole])
        assert values_of(begun, "w").tobytes() == values_of(whole, "w").tobytes()


def without_waiting(tables: Sequence[Any]) -> list[dict[int, bytes]]:
    """Raw rows by id: of each part of the table, over all pservers."""
    found = []
    for number in range(len(parts_of(tables[0]))):
        rows: dict[int, bytes] = {}
        for table in tables:
            rows |= raw_rows(parts_of(table)[number])
        found.append(rows)
    return found


def times_of(tables: Sequence[Any]) -> list[tuple[int, int]]:
    """Version and time of each part of a table: the latest of all pservers."""
    parts = zip(*(parts_of(table) for table in tables), strict=True)
    return [(max(p.version for p in same), max(p.time(0) for p in same)) for same in parts]


def test_a_rule_may_ask_for_a_new_state_or_insist_on_the_saved_one(tmp_path: Path) -> None:
    cut_of_pservers(tmp_path, *trained())
    other = replace(EMB, optimizer=Adagrad(epsilon=1e-3))

    fresh = tables_on(1, JOB, warm_from(tmp_path, WarmRule("emb", state="new")))
    kept = tables_on(1, (W, other), warm_from(tmp_path, WarmRule("emb", state="kept")))

    assert (fresh[0][1].version, fresh[0][0].version) == (0, 3)
    assert kept[0][1].version == 3
    assert without_waiting(kept[0][1:]) == without_waiting([t[1] for t in trained()])
    adam = replace(EMB, optimizer=Adam())
    with pytest.raises(ConfigError, match="emb cannot keep the state of Adagrad of emb"):
        tables_on(1, (W, adam), warm_from(tmp_path, WarmRule("emb", state="kept")))


KINDS = ["growing", "growing halves", "of float16", "of bfloat16", "with a life", "with padding"]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("was", KINDS)
def test_rows_change_their_storage_and_their_parts(was: str, name: str, tmp_path: Path) -> None:
    source = tables_on(2, (SPARSE[was],))
    push(source, PUSHES)
    cut_of_pservers(tmp_path, *source)
    job: SparseTableSpec = replace(SPARSE[name], optimizer=Adagrad())

    begun = tables_on(2, (job,), warm_from(tmp_path, WarmRule("emb", state="new")))

    found, expected = rows_of(begun, "emb"), rows_of(source, "emb")
    expected.pop(3, None) if job.padding_id == 3 else None
    assert found.keys() == expected.keys()
    digits = {"float16": 2e-3, "bfloat16": 1e-2}.get(job.storage, 0.0)
    for row_id, row in expected.items():
        assert np.allclose(found[row_id], row, rtol=digits, atol=digits / 10)


@pytest.mark.parametrize(
    "text",
    [
        to_json(specs.Sync()),
        to_json(specs.WarmStart("cuts", rules=(WarmRule("(", is_pattern=True),))),
        to_json(specs.WarmStart("cuts", unused=("(",))),
        to_json(specs.WarmStart("cuts")).replace('"rules":[]', '"rules":[3]'),
    ],
)
def test_a_warm_start_of_a_stranger_is_refused_unless_it_is_one(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is no warm start|is no regular expression"):
        WarmTables().open(text, JOB)
