"""Modules and kernels of pservers and trainers, loaded once for all processes that are forked.

The process that forks imports this module. It has one thread and no open call of gRPC.
"""

import psrt.cli.launch
import psrt.cli.main
import psrt.cli.pserver
import psrt.cli.trainer
import psrt.pserver.process.daemon
import psrt.rpc.grpc_
import psrt.trainer.sessions.session  # noqa: F401
from psrt.kernels.jit import warm_up
from psrt.pserver.tables import TableRegistry
from tests.faults.ledger_job import SMALL, plan_of

warm_up(["pserver", "trainer", "freeze"])
for mode in ("sync", "geo"):
    plan = plan_of(("a",), SMALL, mode)
    TableRegistry(1).register([*(block.spec for block in plan.blocks), *plan.sparse])
