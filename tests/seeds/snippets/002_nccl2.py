"""Manual for distributed training with Fluid: "Training Using NCCL2 Communication".

Trainers reduce gradients among themselves; this makes the program of the first one.
"""

# --- left out by the document
import psrt.fluid as fluid

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
loss = fluid.layers.mean(fluid.layers.fc(input=x, size=1))
fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)
use_cuda, loss_name = False, loss.name
# --- the document
trainer_id = 0 # get actual trainer id here
trainers = ","
current_endpoint = ""
# --- left out by the document
trainers, current_endpoint = "127.0.0.1:6170,127.0.0.1:6171", "127.0.0.1:6170"
# --- the document
config = fluid.DistributeTranspilerConfig()
config.mode = "nccl2"
t = fluid.DistributeTranspiler(config=config)
t.transpile(trainer_id, trainers=trainers, current_endpoint=current_endpoint)
txe = fluid.ParallelExecutor(use_cuda,
        loss_name=loss_name, num_trainers=len(trainers.split(",")), trainer_id=trainer_id)
