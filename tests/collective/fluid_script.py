"""A worker of fleet.collective: trains three steps and prints the hash of all its parameters."""

from __future__ import annotations

import hashlib

import numpy as np

import psrt.fluid as fluid
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.collective import DistributedStrategy, fleet

fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
ids = fluid.layers.data("ids", [3], dtype="int64")
label = fluid.layers.data("label", [1])
rows = fluid.layers.embedding(ids, size=[50, 4], is_sparse=True, param_attr="table")
layer = fluid.layers.fc(fluid.layers.reshape(rows, [-1, 12]), 8, act="tanh")
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(layer, 1), label))
optimizer = fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(0.1))
fleet.distributed_optimizer(optimizer, DistributedStrategy()).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fleet.startup_program)
if fleet.worker_index() == 1:  # trainer 0's values are those that all begin with
    for parameter in fluid.default_main_program().all_parameters():
        if parameter.name != "table":
            fluid.global_scope()[parameter.name] += 1
fleet.barrier_worker()
rng = np.random.default_rng(fleet.worker_index())
for _ in range(3 + fleet.worker_index()):
    feed = {"ids": rng.integers(0, 50, (16, 3)), "label": rng.random((16, 1), np.float32)}
    exe.run(fleet.main_program, feed, [loss])
fleet.stop_worker()

made = hashlib.sha256()
for parameter in fluid.default_main_program().all_parameters():
    if parameter.name != "table":
        made.update(np.ascontiguousarray(fluid.global_scope()[parameter.name]).tobytes())
print(made.hexdigest())
