"""Options of sparse tables that a pserver refuses when they are registered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from psrt.core import specs
from psrt.core.errors import ConfigError, PsrtError
from psrt.core.specs.policy_rules import MOST_DAYS, MOST_ROUNDS, MOST_SHOWS, option_problems
from psrt.core.specs.table_options import TableOptions
from psrt.pserver.decisions.spec_rules import read_spec
from tests.support.optimizer_formulas import CTR

TABLE = specs.SparseTableSpec(
    *("emb", 4, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(0.1)), seed=7
)
GOOD: list[dict[str, Any]] = [
    {"admission": specs.CountFilter(0)},
    {"admission": specs.Probability(0.0)},
    {"admission": specs.ShowClick("show", "click", 2.5, waiting_ids=10)},
    {"lifecycle": specs.Lifecycle(9, 1.5, 1 << 40, 0.8, 0.98)},
    {"lifecycle": specs.Lifecycle(MOST_ROUNDS, MOST_DAYS)},
    {"admission": specs.CountFilter(MOST_SHOWS)},
    {"growth": specs.Growth(3, 10.0)},
    {"score": specs.Score(0.0, 2.0)},
    *({"optimizer": optimizer} for optimizer in CTR.values()),
]


@pytest.mark.parametrize("changes", GOOD, ids=repr)
def test_what_makes_sense_is_accepted(changes: dict[str, Any]) -> None:
    spec = replace(TABLE, **changes)

    assert read_spec(specs.to_json(spec)) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"admission": specs.CountFilter(-1)}, "count of its admission is -1"),
        ({"admission": specs.CountFilter(2.5)}, "count of its admission is 2.5, not a whole"),  # type: ignore[arg-type]
        ({"admission": specs.CountFilter(2, 0)}, "waiting_ids of its admission is 0"),
        ({"admission": specs.CountFilter(True)}, "count of its admission is True"),
        ({"admission": specs.Probability(1.5)}, r"is 1.5, not in \[0, 1\]"),
        ({"admission": specs.ShowClick("", "c")}, "name no vars"),
        ({"admission": specs.ShowClick("s", "c", -1.0)}, "threshold of its admission is -1.0"),
        ({"admission": specs.Sgd()}, "is no admission"),
        ({"score": specs.Score(-0.1)}, "nonclick_coeff of its score is -0.1"),
        ({"score": None}, "is no score"),
        ({"lifecycle": specs.Growth()}, "is no lifecycle"),
        ({"lifecycle": specs.Lifecycle(ttl_rounds=-1)}, "ttl_rounds of its lifecycle is -1"),
        ({"lifecycle": specs.Lifecycle(2**29 + 1)}, r"ttl_rounds .*, not in \[0, 536870912\]"),
        ({"lifecycle": specs.Lifecycle(1, 1e18)}, r"ttl_days of .* 1e\+18, not in \[0, 1000000\]"),
        ({"lifecycle": specs.Lifecycle(0, float("nan"))}, "ttl_days of its lifecycle is nan, not"),
        ({"admission": specs.CountFilter(2**24 + 1)}, r"count .*, not in \[0, 16777216\]"),
        ({"lifecycle": specs.Lifecycle(decay=0.0)}, "decay of its lifecycle is 0.0"),
        ({"lifecycle": specs.Lifecycle(delete_score=float("inf"))}, "delete_score .* is inf"),
        ({"growth": specs.Lifecycle()}, "is no growth"),
        ({"growth": specs.Growth(4)}, r"embed_width of its growth is 4, not in \[1, 3\]"),
        ({"growth": specs.Growth(0)}, "embed_width of its growth is 0"),
        ({"optimizer": specs.CtrAdagrad(0.0)}, "initial_g2sum of its optimizer is 0.0"),
        ({"optimizer": specs.CtrSgd(1.0, -1.0)}, "between 1.0 and -1.0, which is nowhere"),
        ({"optimizer": specs.CtrAdam(beta1=1.0)}, "beta1 of its optimizer is 1.0"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PsrtError, match=message):
        read_spec(specs.to_json(replace(TABLE, **changes)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage": "float64"}, "its storage 'float64' is none of float32, float16, bfloat16"),
        ({"storage": ["float16"]}, "is none of float32"),
        ({"admission": specs.Probability(2.0)}, r"is 2.0, not in \[0, 1\]"),
        ({"admission": specs.CountFilter("3")}, "count of its admission is '3', not a whole"),  # type: ignore[arg-type]
        ({"admission": "count"}, "'count' is no admission"),
        ({"lifecycle": {"ttl_days": 3}}, "{'ttl_days': 3} is no lifecycle"),
        ({"lifecycle": specs.Lifecycle(0, 10**400)}, "ttl_days of its lifecycle is 10{39}, not"),
        ({"score": None}, "None is no score"),
        ({"growth": specs.Growth(0)}, "embed_width of its growth is 0"),
    ],
)
def test_what_makes_no_sense_is_refused_where_a_program_says_it(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        TableOptions(**options)


def test_a_row_that_begins_with_all_its_weights_is_known_once_the_width_is() -> None:
    options = TableOptions(growth=specs.Growth(4))

    assert list(option_problems(options, 5)) == []
    assert "not in [1, 3]" in next(option_problems(options, TABLE.width))
