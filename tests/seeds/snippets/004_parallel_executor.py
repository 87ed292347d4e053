"""Parallel executor: one to train and one to test, over the same parameters.

The document has lost `train_exe.run(fetch_list` and `test_exe.run(fetch_list` from its last lines.
"""

# --- left out by the document
import numpy as np

import psrt.fluid as fluid

use_cuda, dev_count, memory_opt = False, 2, False
x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
predicted = fluid.layers.fc(input=x, size=1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))
train_program = fluid.default_main_program()
test_program = train_program.clone(for_test=True)
fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)
# --- the document
# Note:
#   - If you want to specify the GPU cards which are used to run
#     in ParallelExecutor, you should define the CUDA_VISIBLE_DEVICES
#     in environment.
#   - If you want to use multi CPU to run the program in ParallelExecutor,
#     you should define the CPU_NUM in the environment.

# First create the Executor.
place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
exe = fluid.Executor(place)

# Run the startup program once and only once.
# --- left out by the document
exe.run(fluid.default_startup_program())
# --- the document

# Define train_exe and test_exe
exec_strategy = fluid.ExecutionStrategy()
exec_strategy.num_threads = dev_count * 4 # the size of thread pool.
build_strategy = fluid.BuildStrategy()
build_strategy.memory_optimize = True if memory_opt else False

train_exe = fluid.ParallelExecutor(use_cuda=use_cuda,
# --- left out by the document
                                   main_program=train_program,
                                   build_strategy=build_strategy,
                                   exec_strategy=exec_strategy,
                                   loss_name=loss.name)
# --- the document
# NOTE: loss_name is unnecessary for test_exe.
test_exe = fluid.ParallelExecutor(use_cuda=True,
# --- left out by the document
                                  main_program=test_program,
                                  build_strategy=build_strategy,
                                  exec_strategy=exec_strategy,
                                  share_vars_from=train_exe)
rows = np.random.default_rng(0).normal(size=(64, 13)).astype(np.float32)
feed_dict = {"x": rows, "y": rows.sum(axis=1, keepdims=True)}
losses = []
for _ in range(20):
    train_loss, = train_exe.run(fetch_list=[loss.name], feed=feed_dict)
    test_loss, = test_exe.run(fetch_list=[loss.name], feed=feed_dict)
    losses.append((float(np.mean(train_loss)), float(np.mean(test_loss))))
