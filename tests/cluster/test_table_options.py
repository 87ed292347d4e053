"""Options of sparse tables travel from a program to the rows of pservers, in every mode that has
them, and a trainer shrinks tables while it trains."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers, tables
from psrt.core import specs
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.tensors import Ragged
from psrt.graph.program import Program
from psrt.partition.plan import build_plan
from psrt.partition.transpiler import DistributeTranspiler
from psrt.partition.transpiler_config import DistributeTranspilerConfig
from psrt.trainer.inputs.counts import counted_tables, counts_of
from psrt.trainer.training.connected import ConnectedExecutor
from tests.support.live_pservers import live_pservers

EXAMPLES, STEPS, IDS = 16, 5, 40
SHOWN = tables.ShowClick("shown", "clicked", threshold=0.55)


def model(**options: Any) -> tuple[Program, str]:
    """A regression on the mean of the rows of some ids."""
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", (1,), "int64", ragged=True)
        layers.data("shown", (1,))
        layers.data("clicked", (1,), "int64")
        y = layers.data("y")
        table = psrt.Param(
            "rows",
            psrt.initializer.Uniform(-0.1, 0.1),
            optimizer=psrt.optimizer.CtrAdagrad(0.1),
            table=tables.TableOptions(**options),
        )
        rows = layers.embedding(ids, (1, 4), is_distributed=True, param=table)
        pooled = layers.sequence_pool(rows, "average")
        loss = layers.mean(layers.square_error_cost(layers.fc(pooled, 1), y))
        psrt.optimizer.Adam(0.01).minimize(loss)
    return program, loss.name


def batches() -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    made = []
    for _ in range(STEPS):
        lists = [rng.integers(0, IDS, rng.integers(1, 4)).tolist() for _ in range(EXAMPLES)]
        made.append(
            {
                "ids": Ragged.of(lists),
                "shown": rng.integers(1, 3, (EXAMPLES, 1)).astype(np.float32),
                "clicked": rng.integers(0, 2, (EXAMPLES, 1)),
                "y": rng.random((EXAMPLES, 1)).astype(np.float32),
            }
        )
    return made


def connected(pservers: Any, program: Program, mode: Any) -> ConnectedExecutor:
    transpiler = DistributeTranspiler(DistributeTranspilerConfig(min_block_size=8))
    transpiler.transpile(program, 0, [each.endpoint for each in pservers], 1, mode)
    part = transpiler.get_trainer_program()
    return ConnectedExecutor(part, call_timeout_s=30.0, connect_timeout_s=30.0)


def rows_of(executor: ConnectedExecutor) -> dict[int, np.ndarray]:
    pages = list(executor.rows("rows"))
    return {int(i): row for ids, rows in pages for i, row in zip(ids, rows, strict=True)}


def scores() -> dict[int, float]:
    """0.1 · (shows − clicks) + clicks of every id, over all batches."""
    found: Counter[int] = Counter()
    for batch in batches():
        ids, worth = batch["ids"], 0.1 * batch["shown"] + 0.9 * batch["clicked"]
        for example in range(EXAMPLES):
            for row_id in ids.values[ids.offsets[example] : ids.offsets[example + 1]]:
                found[int(row_id)] += float(worth[example, 0])
    return dict(found)


@pytest.mark.parametrize("mode", [specs.Sync(), specs.Async(), specs.HalfAsync(), specs.Ssp(1)])
def test_shows_and_clicks_of_examples_decide_which_ids_own_rows(mode: Any) -> None:
    program, _ = model(admission=SHOWN)
    with live_pservers(2) as pservers, connected(pservers, program, mode) as executor:
        executor.run_from(batches())
        executor.flush()

        found = set(rows_of(executor))

    assert found == {i for i, score in scores().items() if score >= 0.5499}
    assert 0 < len(found) < IDS


def test_a_trainer_shrinks_the_tables_of_all_pservers() -> None:
    life = tables.Lifecycle(delete_score=2.0, decay=0.5)
    program, loss = model(admission=tables.ShowClick("shown", "clicked"), lifecycle=life)
    with live_pservers(2) as pservers, connected(pservers, program, specs.Sync()) as executor:
        for batch in batches():
            executor.run(batch, [loss])

        told = executor.shrink(dry_run=True)
        before = set(rows_of(executor))
        done = executor.shrink("rows")
        left = set(rows_of(executor))
        (again,) = executor.run(batches()[0], [loss])

    assert before == scores().keys()
    assert left == {i for i, score in scores().items() if 0.5 * score >= 2.0}
    assert told == done
    assert done["rows"].total == done["rows"].rows["score"] == len(before) - len(left)
    assert done["rows"].bytes > 0
    assert np.isfinite(again).all()


def test_a_growing_table_is_read_and_trained_whole() -> None:
    program, loss = model(
        admission=tables.ShowClick("shown", "clicked"),
        growth=tables.Growth(1, 2.0),
        storage="bfloat16",
    )
    with live_pservers(2) as pservers, connected(pservers, program, specs.Sync()) as executor:
        losses = [float(executor.run(batch, [loss])[0].reshape(-1)[0]) for batch in batches()]
        found = rows_of(executor)

    grown = {i for i, row in found.items() if row[1:].any()}
    assert grown == {i for i, score in scores().items() if score >= 1.9999}
    assert np.isfinite(losses).all()


# --- what is said and what is refused -----------------------------------------------------------


def test_the_plan_has_what_a_parameter_was_given() -> None:
    options = tables.TableOptions(
        tables.CountFilter(3), tables.Score(0.2), tables.Lifecycle(9), tables.Growth(2), "float16"
    )
    program, _ = model(**vars(options))

    (spec,) = build_plan(program.parameters.values(), ["ps0:1"]).sparse

    assert (spec.admission, spec.score) == (options.admission, options.score)
    assert (spec.lifecycle, spec.growth) == (options.lifecycle, options.growth)
    assert (spec.storage, spec.optimizer) == ("float16", specs.CtrAdagrad())
    assert spec.learning_rate == specs.ConstantRate(0.1)
    assert Program.from_text(program.to_text()) == program


def test_a_parameter_of_its_own_optimizer_leaves_the_others_theirs() -> None:
    program, _ = model()

    trained = {p.name: type(p.optimizer).__name__ for p in program.trained()}

    assert trained.pop("rows") == "CtrAdagrad"
    assert set(trained.values()) == {"Adam"}


def test_a_dense_parameter_has_no_options_of_a_table() -> None:
    with psrt.program():
        x = layers.data("x", (3,))
        with pytest.raises(ProgramError, match="is dense, and was given options"):
            layers.fc(x, 2, param=psrt.Param("w", table=tables.TableOptions(storage="float16")))


@pytest.mark.parametrize(
    "options",
    [
        {"admission": tables.CountFilter(2)},
        {"lifecycle": tables.Lifecycle(ttl_rounds=3)},
        {"growth": tables.Growth()},
    ],
)
def test_geo_refuses_what_its_trainers_would_not_see(options: dict[str, Any]) -> None:
    program, _ = model(**options)

    with pytest.raises(ConfigError, match="mode Geo, where trainers hold the rows"):
        build_plan(program.parameters.values(), ["ps0:1"], mode=specs.Geo(4))


def test_shows_by_a_var_that_nobody_feeds_are_refused() -> None:
    program, _ = model(admission=tables.ShowClick("shown", "seen_at"))

    with pytest.raises(ProgramError, match="'seen_at', which is no data var"):
        counted_tables(program)


# --- counting -------------------------------------------------------------------------------------


def test_an_id_counts_each_time_it_stands_in_an_example() -> None:
    feed = {
        "a": Ragged.of([[7, 7], [9]]),
        "b": np.array([[9, 5], [5, 5]]),
        "drawn": np.array([7, 5, 9]),
        "show": np.array([2.0, 3.0], np.float32),
        "click": np.array([[1], [0]]),
    }
    index = {  # of the distinct ids 5, 7, 9
        "a": np.array([1, 1, 2], np.int32),
        "b": np.array([2, 0, 0, 0], np.int32),
        "drawn": np.array([1, 0, 2], np.int32),
    }

    counts = counts_of(feed, index, 3, ("show", "click"))

    assert counts.tolist() == [[2 + 3 + 3 + 1, 1], [2 + 2 + 1, 2], [3 + 2 + 1, 1]]


def test_two_shows_of_one_example_are_refused() -> None:
    feed = {"a": np.array([[7]]), "show": np.ones((1, 2), np.float32), "click": np.ones(1)}

    with pytest.raises(ProgramError, match="show counts shows or clicks, and was fed more or less"):
        counts_of(feed, {"a": np.zeros(1, np.int32)}, 1, ("show", "click"))
