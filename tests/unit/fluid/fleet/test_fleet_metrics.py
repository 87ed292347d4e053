"""`fleet.util` and `fleet.metrics`: numbers of all workers put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, JobError
from psrt.fluid.incubate.fleet.base.role_maker import Role
from tests.support.scripts import endpoints
from tests.unit.fluid.fleet.test_fleet_shuffle import in_threads, member, served

RNG = np.random.default_rng(8)
SCORES, LABELS = RNG.integers(0, 2000, (2, 50)), RNG.integers(0, 2, (2, 50))


def counts(index: int, label: int) -> Any:
    """Counts of one worker's examples by score, more than one note holds."""
    return np.bincount(SCORES[index][LABELS[index] == label], minlength=2000)


def test_metrics_are_those_of_the_examples_of_all_workers() -> None:
    pservers = endpoints(1)
    found: dict[int, list[Any]] = {}
    with served(pservers):
        workers = [member(Role.WORKER, pservers, index)[0] for index in range(2)]
        scopes = [fluid.Scope() for _ in workers]
        for index, scope in enumerate(scopes):
            scope["hits"] = np.array([3.0 + index])

        def work(index: int) -> Callable[[], None]:
            def measure() -> None:
                fleet, scope = workers[index], scopes[index]
                metrics, util = fleet.metrics, fleet.util
                found[index] = [
                    metrics.sum("hits", scope),
                    metrics.max(np.array([[index, -index]])),
                    metrics.min(np.array([index, 5 - index])),
                    metrics.acc("hits", np.array([10]), scope),
                    metrics.mae(2.0 + index, 10),
                    metrics.rmse(8.0, 4.0),
                    metrics.auc(counts(index, 1), counts(index, 0)),
                    util.all_gather(index + 0.5),
                ]
                with pytest.raises(JobError, match="brought"):
                    util.all_reduce(np.zeros(1 + index))
                fleet.stop_worker()

            return measure

        in_threads([work(0), work(1)])

    scores, labels = SCORES.ravel(), LABELS.ravel()
    ones, zeros = scores[labels == 1][:, None], scores[labels == 0]
    area = ((ones > zeros) + 0.5 * (ones == zeros)).mean()
    for values in found.values():
        assert values[0].tolist() == [7.0]
        assert values[1].tolist() == [[1, 0]]
        assert values[2].tolist() == [0, 4]
        assert values[3:6] == [0.35, 0.25, np.sqrt(2.0)]
        assert values[6] == pytest.approx(area)
        assert values[7] == [0.5, 1.5]


def test_a_mode_that_is_unknown_is_refused() -> None:
    fleet = member(Role.WORKER, endpoints(1), 0)[0]

    with pytest.raises(ConfigError, match="not sum, max or min"):
        fleet.util.all_reduce(1.0, "mean")
