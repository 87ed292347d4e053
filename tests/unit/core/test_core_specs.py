"""Specs survive their JSON form, and what a stranger sends is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from psrt.core import specs
from psrt.core.errors import ConfigError
from tests.support.optimizer_formulas import CTR, OPTIMIZERS, ROW_WISE

DENSE = specs.DenseTableSpec(
    name="fc.w.block1",
    parameter="fc.w",
    shape=(100, 16),
    offset=800,
    size=800,
    initializer=specs.Uniform(-0.5, 0.5),
    optimizer=specs.Adam(beta1=0.8),
    learning_rate=specs.PiecewiseDecay(boundaries=(10, 20), rates=(0.1, 0.01, 0.001)),
    seed=7,
)
SPARSE = specs.SparseTableSpec(
    name="emb",
    width=8,
    initializer=specs.Normal(0.0, 0.02),
    optimizer=specs.Adagrad(),
    learning_rate=specs.ExponentialDecay(0.1, 100, 0.9, staircase=True),
    seed=-1,
    first_shard=512,
    padding_id=0,
    admission=specs.ShowClick("show", "click"),
    score=specs.Score(0.2, 2.0),
    lifecycle=specs.Lifecycle(delete_score=0.8),
    growth=specs.Growth(2),
)
EVERY_KIND = [
    specs.Constant(1.5),
    specs.ConstantRate(0.1),
    specs.NaturalExpDecay(0.1, 10, 0.5),
    specs.InverseTimeDecay(0.1, 10, 0.5),
    specs.PolynomialDecay(0.1, 10),
    *OPTIMIZERS.values(),
    *CTR.values(),
    *ROW_WISE.values(),
    specs.CountFilter(3),
    specs.Probability(0.5),
    specs.ShowClick("show", "click", 2.0),
    specs.Lifecycle(ttl_rounds=9, ttl_days=0.5, max_bytes=1 << 30, delete_score=0.8, decay=0.98),
    specs.Growth(1, 10.0),
    specs.Sync("wait"),
    specs.Async(send_queue_size=9),
    specs.HalfAsync(),
    specs.Geo(400),
    DENSE,
    SPARSE,
]


@pytest.mark.parametrize("spec", EVERY_KIND, ids=lambda spec: type(spec).__name__)
def test_a_spec_survives_its_json_form(spec: Any) -> None:
    assert specs.from_json(specs.to_json(spec)) == spec


def test_the_json_form_is_canonical() -> None:
    text = specs.to_json(specs.Uniform(-1.0, 1.0))

    assert text == '{"high":1.0,"kind":"Uniform","low":-1.0}'


def test_every_optimizer_is_tested_somewhere_by_its_formula() -> None:
    tested = {type(each) for each in (OPTIMIZERS | CTR | ROW_WISE).values()}

    assert tested == set(get_args(specs.Optimizer))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"kind":"Popen"}',
        '{"rate":0.1}',
        '{"kind":"Constant","volume":3}',
        '{"kind":"DenseTableSpec","name":"w"}',
        '{"kind":[1]}',
        '{"kind":{}}',
        '{"kind":' + "[" * 900 + "]" * 900 + "}",
        "[" * 900 + "]" * 900,
        "[" * 100_000,
        '{"kind":"Constant","value":1' + "0" * 5000 + "}",
    ],
)
def test_text_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        specs.from_json(text)


def test_lists_come_back_as_tuples_so_that_specs_stay_hashable() -> None:
    again = specs.from_json(specs.to_json(DENSE))

    assert hash(again) == hash(DENSE)
    assert json.loads(specs.to_json(DENSE))["shape"] == [100, 16]


def test_differences_name_field_and_both_values() -> None:
    other = replace(SPARSE, width=16)

    assert specs.differences(SPARSE, other) == "width: 8 != 16"
    assert specs.differences(SPARSE, SPARSE) == ""
    assert specs.differences(SPARSE, DENSE) == "kind: SparseTableSpec != DenseTableSpec"
