"""Best practices of distributed training on CPU, earlier edition: "Improve CPU usage rate"."""

# --- left out by the document
import os

import numpy as np

import psrt.fluid as fluid

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
predicted = fluid.layers.fc(input=x, size=1)
avg_cost = fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))
fluid.optimizer.SGD(learning_rate=0.01).minimize(avg_cost)
main_program = fluid.default_main_program()
fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
# --- the document
# Configure the execution strategy, mainly to set the number of threads
exec_strategy = fluid.ExecutionStrategy()
exec_strategy.num_threads = 8

# Configure the composition strategy, for CPU training, you should use the Reduce mode for training.
build_strategy = fluid.BuildStrategy()
if int(os.getenv("CPU_NUM")) > 1:
	build_strategy.reduce_strategy=fluid.BuildStrategy.ReduceStrategy.Reduce

pe = fluid.ParallelExecutor(
	use_cuda=False,
	loss_name=avg_cost.name,
	main_program=main_program,
	build_strategy=build_strategy,
	exec_strategy=exec_strategy)
# --- left out by the document
rows = np.random.default_rng(0).normal(size=(64, 13)).astype(np.float32)
feed = {"x": rows, "y": rows.sum(axis=1, keepdims=True)}
losses = [float(np.mean(pe.run(feed=feed, fetch_list=[avg_cost.name])[0])) for _ in range(20)]
