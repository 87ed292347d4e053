"""Best practices of distributed training on CPU: "Change distributed training strategy".

Two changes only: imports say psrt in place of paddle, and one strategy of the four is kept, which
the variable MODE names.
"""

# --- left out by the document
import os

import numpy as np

import psrt.fluid as fluid
# --- the document
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
import psrt.fluid.incubate.fleet.base.role_maker as role_maker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import DistributedStrategyFactory
# --- left out by the document
learning_rate = 0.05
x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
predicted = fluid.layers.fc(input=x, size=1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))
strategies = {}
# --- the document
# step1: get distributed strategy
# Sync
strategy = DistributedStrategyFactory.create_sync_strategy()
# --- left out by the document
strategies["sync"] = strategy
# --- the document
# Half-Async
strategy = DistributedStrategyFactory.create_half_async_strategy()
# --- left out by the document
strategies["half_async"] = strategy
# --- the document
# Async
strategy = DistributedStrategyFactory.create_async_strategy()
# --- left out by the document
strategies["async"] = strategy
# --- the document
strategy = DistributedStrategyFactory.create_geo_strategy(update_frequency=400)
# --- left out by the document
strategies["geo"] = strategy
strategy = strategies[os.environ["MODE"]]
# --- the document

# step2: define role of node
role = role_maker.PaddleCloudRoleMaker()
# --- left out by the document
fleet.init(role)
# --- the document

# step3: get distributed training program
optimizer = fluid.optimizer.SGD(learning_rate) # 以SGD优化器为例
optimizer = fleet.distributed_optimizer(optimizer, strategy)
# --- left out by the document
optimizer.minimize(loss)
# --- the document

# step4.1: run parameter server node
if fleet.is_server():
# --- left out by the document
    fleet.init_server()
    fleet.run_server()
# --- the document

# step4.2: run worker node
elif fleet.is_worker():
# --- left out by the document
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
# --- the document
    # Do training
# --- left out by the document
    rows = np.random.default_rng(fleet.worker_index()).normal(size=(32, 13)).astype(np.float32)
    feed = {"x": rows, "y": rows.sum(axis=1, keepdims=True)}
    losses = [float(exe.run(fleet.main_program, feed, [loss])[0][0]) for _ in range(40)]
    fleet.stop_worker()
    assert losses[-1] < 0.5 * losses[0], losses
