"""A model written as for Fluid trains to the same bits as the same model written for psrt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import psrt
import psrt.fluid as fluid
from tests.unit.fluid.models import MODELS, STEPS, Feeds


def trained_by_psrt(build: Callable[[], None], feeds: Feeds) -> Iterator[tuple[str, Any]]:
    with psrt.program() as program:
        build()
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    for feed in feeds:
        executor.run(feed, roles=("forward", "backward", "optimize"))
    return ((name, scope[name]) for name in program.parameters)


@pytest.mark.parametrize("model", MODELS)
def test_five_steps_end_in_the_same_bits(model: str) -> None:
    written_for_fluid, written_for_psrt, make_feeds = MODELS[model]
    expected = dict(trained_by_psrt(written_for_psrt, make_feeds()))

    avg_cost = written_for_fluid()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed=feed, fetch_list=[avg_cost])[0] for feed in make_feeds()]

    scope = fluid.global_scope()
    assert [loss.shape for loss in losses] == [(1,)] * STEPS
    assert expected
    for name, values in expected.items():
        np.testing.assert_array_equal(scope.find_var(name).get_tensor(), values, err_msg=name)


@pytest.mark.parametrize("model", MODELS)
def test_replicas_train_to_nearly_the_same(model: str) -> None:
    written_for_fluid, written_for_psrt, make_feeds = MODELS[model]
    expected = dict(trained_by_psrt(written_for_psrt, make_feeds()))

    avg_cost = written_for_fluid()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=avg_cost.name, places=fluid.cpu_places(2)
    )
    for feed in make_feeds():
        exe.run(compiled, feed=feed, fetch_list=[avg_cost.name])

    for name, values in expected.items():
        got = fluid.global_scope().find_var(name).get_tensor()
        np.testing.assert_allclose(got, values, rtol=1e-4, atol=1e-6, err_msg=name)
