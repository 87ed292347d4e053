"""`embedding(entry=…)`, options of tables in a ParamAttr, and fleet.shrink."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt import tables
from psrt.core.errors import ConfigError, ProgramError
from psrt.fluid import distributed
from psrt.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler
from psrt.fluid.parameters.entry_attr import CountFilterEntry, ProbabilityEntry, ShowClickEntry
from tests.support.scripts import endpoints

DEADLINE_S = 60.0
LIFE = tables.Lifecycle(delete_score=0.15)


def looked_up(entry: Any = None, param_attr: Any = None) -> fluid.Variable:
    ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
    return fluid.layers.embedding(
        ids, [1000, 4], is_sparse=True, is_distributed=True, param_attr=param_attr, entry=entry
    )


def options() -> tables.TableOptions:
    (parameter,) = fluid.default_main_program().graph.parameters.values()
    return parameter.options


@pytest.mark.parametrize(
    ("entry", "admission"),
    [
        (None, None),
        (CountFilterEntry(5), tables.CountFilter(5)),
        (ProbabilityEntry(0.25), tables.Probability(0.25)),
        (ShowClickEntry("show", "click"), tables.ShowClick("show", "click")),
        (distributed.CountFilterEntry(0), tables.CountFilter(0)),
    ],
)
def test_an_entry_is_the_admission_of_the_table(entry: Any, admission: Any) -> None:
    looked_up(entry)

    assert options().admission == admission


def test_an_entry_counts_beside_other_options() -> None:
    looked_up(
        CountFilterEntry(2),
        fluid.ParamAttr(name="t", table=tables.TableOptions(storage="float16", lifecycle=LIFE)),
    )

    assert options() == tables.TableOptions(
        tables.CountFilter(2), lifecycle=LIFE, storage="float16"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountFilterEntry(-1), "given -1, which is no whole number"),
        (lambda: CountFilterEntry(2.5), "given 2.5"),  # type: ignore[arg-type]
        (lambda: ProbabilityEntry(1.0), "given 1.0, which is no float between 0 and 1"),
        (lambda: ProbabilityEntry(1), "given 1, which is no float"),
        (lambda: ShowClickEntry("show", None), "no names of vars"),  # type: ignore[arg-type]
        (lambda: looked_up("count_filter_entry:3"), "embedding was given entry 'count_filter"),
    ],
)
def test_what_is_no_entry_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def of_role(role: Role, pservers: list[str]) -> Any:
    made = DistributedTranspiler()
    made.init(UserDefinedRoleMaker(0, role, 1, pservers))
    return made


def minimized(made: Any) -> fluid.Variable:
    rows = looked_up(param_attr=fluid.ParamAttr(table=tables.TableOptions(lifecycle=LIFE)))
    loss = fluid.layers.mean(fluid.layers.sequence_pool(rows, "sum"))
    made.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    return loss


def test_fleet_shrinks_tables_as_their_lifecycle_says() -> None:
    pservers = endpoints(1)
    server = of_role(Role.SERVER, pservers)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        minimized(server)
    server.init_server()
    thread = threading.Thread(target=server.run_server, daemon=True)
    thread.start()
    worker = of_role(Role.WORKER, pservers)
    loss = minimized(worker)
    exe = fluid.Executor()
    exe.run(worker.startup_program)
    for ids in ([1, 2, 3], [2, 3], [3]):  # every push shows an id once: scores 0.1, 0.2, 0.3
        feed = {"ids": fluid.create_lod_tensor(np.array(ids)[:, None], [[len(ids)]])}
        exe.run(worker.main_program, feed, [loss])

    (shrunk,) = worker.shrink().values()
    with pytest.raises(ConfigError, match="given the threshold 7"):
        worker.shrink(7)
    worker.stop_worker()
    thread.join(DEADLINE_S)

    assert shrunk.rows == {"rounds": 0, "days": 0, "score": 1, "memory": 0}
    assert not thread.is_alive()
    with pytest.raises(ProgramError, match="is for workers"):
        server.shrink()
