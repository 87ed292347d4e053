"""Best practices of distributed training on CPU: a program compiled with a strategy's own parts."""

# --- left out by the document
import os

import numpy as np

import psrt.fluid as fluid
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
predicted = fluid.layers.fc(input=x, size=1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))
strategy = StrategyFactory.create_sync_strategy()
fleet.init(role_maker.PaddleCloudRoleMaker())
fleet.distributed_optimizer(fluid.optimizer.SGD(0.05), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    raise SystemExit
fleet.init_worker()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fleet.startup_program)
# --- the document
compiled_program = fluid.compiler.CompiledProgram(fleet.main_program).with_data_parallel(
# --- left out by the document
    loss_name=loss.name,
    build_strategy=strategy.get_build_strategy(),
    exec_strategy=strategy.get_execute_strategy(),
)
assert int(os.environ["CPU_NUM"]) > 1
rows = np.random.default_rng(0).normal(size=(32, 13)).astype(np.float32)
feed = {"x": rows, "y": rows.sum(axis=1, keepdims=True)}
losses = [float(np.mean(exe.run(compiled_program, feed, [loss.name])[0])) for _ in range(40)]
fleet.stop_worker()
assert losses[-1] < 0.5 * losses[0], losses
