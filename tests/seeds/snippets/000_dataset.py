"""Best practices of distributed training on CPU: "Improve data IO speed"."""

# --- left out by the document
import os

import psrt.fluid as fluid

ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
click = fluid.layers.data(name="click", shape=[1], dtype="float32")
rows = fluid.layers.embedding(input=ids, size=[100, 1], is_sparse=True)
logit = fluid.layers.sequence_pool(input=rows, pool_type="sum")
cost = fluid.layers.sigmoid_cross_entropy_with_logits(x=logit, label=click)
loss = fluid.layers.mean(cost)
fluid.optimizer.SGD(learning_rate=0.5).minimize(loss)
# --- the document
dataset = fluid.DatasetFactory().create_dataset()
# --- left out by the document
dataset.set_use_var([ids, click])
dataset.set_pipe_command("cat")
dataset.set_batch_size(32)
dataset.set_thread(1)
dataset.set_filelist([os.environ["FILE"]])
# --- the document
exe = fluid.Executor(fluid.CPUPlace())
# --- left out by the document
exe.run(fluid.default_startup_program())
exe.train_from_dataset(program=fluid.default_main_program(), dataset=dataset)
