"""Table specs a pserver refuses: numbers that would break a formula later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.pserver.decisions.spec_rules import read_spec
from tests.support.optimizer_formulas import OPTIMIZERS

BLOCK = specs.DenseTableSpec(
    name="w",
    parameter="w",
    shape=(10, 4),
    offset=0,
    size=40,
    initializer=specs.Constant(0.0),
    optimizer=specs.Sgd(),
    learning_rate=specs.ConstantRate(0.1),
    seed=1,
)
ROWS = specs.SparseTableSpec(
    name="emb",
    width=4,
    initializer=specs.Constant(0.0),
    optimizer=specs.Sgd(),
    learning_rate=specs.ConstantRate(0.1),
    seed=1,
)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_every_optimizer_is_accepted(optimizer: specs.Optimizer) -> None:
    spec = replace(BLOCK, optimizer=optimizer)

    assert read_spec(specs.to_json(spec)) == spec


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (specs.Adam(beta1=1.0), r"beta1 of its optimizer is 1.0, not in \[0, 1\)"),
        (specs.Momentum(-0.1), r"momentum of its optimizer is -0.1, not in \[0, 1\)"),
        (specs.RmsProp(rho=1.5), "rho of its optimizer is 1.5"),
        (specs.DecayedAdagrad(decay=2.0), "decay of its optimizer is 2.0"),
        (specs.Adagrad(epsilon=-1.0), "epsilon of its optimizer is -1.0, below 0"),
        (specs.Ftrl(l1=-0.1), "l1 of its optimizer is -0.1, below 0"),
        (specs.Ftrl(lr_power=0.5), "lr_power of its optimizer is 0.5, above 0"),
        (specs.Lamb(lamb_weight_decay=float("inf")), "lamb_weight_decay .* not a finite number"),
        (specs.Adam(lazy="no"), "lazy of its optimizer is 'no'"),  # type: ignore[arg-type]
        (specs.CtrSgd(weight_min=1e300), "weight_min of its optimizer .* not a finite number of f"),
        (specs.Constant(0.0), "is no optimizer"),
    ],
)
def test_numbers_that_break_a_formula_are_refused(optimizer: specs.Optimizer, message: str) -> None:
    with pytest.raises(PsrtError, match=message):
        read_spec(specs.to_json(replace(BLOCK, optimizer=optimizer)))


@pytest.mark.parametrize("section", [-1, 1 << 20, True, "1"])
def test_a_section_that_no_pserver_has_is_refused(section: int) -> None:
    with pytest.raises(PsrtError, match=f"its section is {section!r}"):
        read_spec(specs.to_json(replace(BLOCK, section=section)))


@pytest.mark.parametrize("name", ["", "half a \ud800", 3])
def test_a_name_that_no_call_could_bear_is_refused(name: str) -> None:
    with pytest.raises(PsrtError, match="its name is not a text"):
        read_spec(specs.to_json(replace(BLOCK, name=name)))


@pytest.mark.parametrize(
    ("initializer", "message"),
    [
        (specs.Constant(1e300), "value of its initializer .* not a finite number of float32"),
        (specs.Uniform(1.0, -1.0), "first values of its initializer lie between 1.0 and -1.0"),
        (specs.TruncatedNormal(0.0, -1.0), "std of its initializer is -1.0, below 0"),
    ],
)
def test_first_values_that_float32_does_not_have_are_refused(
    initializer: specs.Initializer, message: str
) -> None:
    with pytest.raises(PsrtError, match=message):
        read_spec(specs.to_json(replace(BLOCK, initializer=initializer)))


@pytest.mark.parametrize("optimizer", [specs.LarsMomentum(), specs.Lamb()])
def test_a_part_of_a_parameter_whose_norm_counts_is_refused(optimizer: specs.Optimizer) -> None:
    part = replace(BLOCK, optimizer=optimizer, size=20)

    with pytest.raises(PsrtError, match="takes norms of a whole parameter"):
        read_spec(specs.to_json(part))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (0, 4)}, r"its shape \(0, 4\) is not a list of positive whole numbers"),
        ({"size": 0}, "it covers 0 elements from 0"),
        ({"offset": 1}, r"elements 1 to 41 are outside a parameter of shape \(10, 4\)"),
        ({"seed": 1 << 63}, "is not a 64-bit integer"),
    ],
)
def test_a_block_that_is_no_part_of_its_parameter_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(PsrtError, match=message):
        read_spec(specs.to_json(replace(BLOCK, **changes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "its width is 0"),
        ({"storage": "int4"}, "its storage 'int4' is none of"),
        ({"virtual_shards": 0}, "it has 0 virtual shards"),
        ({"first_shard": -1}, "it holds virtual shards -1 to"),
        ({"last_shard": 1 << 20}, "it holds virtual shards 0 to 1048576"),
        ({"first_shard": 5, "last_shard": 5}, "its virtual shards, 5 to 5, are none"),
        ({"padding_id": 1 << 63}, "its padding id 9223372036854775808 is not a 64-bit integer"),
    ],
)
def test_rows_that_no_pserver_could_hold_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PsrtError, match=message):
        read_spec(specs.to_json(replace(ROWS, **changes)))
