"""Manual for distributed training with Fluid: "Choose Synchronous Or Asynchronous Training"."""

# --- left out by the document
import psrt.fluid as fluid

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
loss = fluid.layers.mean(fluid.layers.fc(input=x, size=1))
fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)
trainer_id, pserver_endpoints, trainers = 0, "127.0.0.1:6170,127.0.0.1:6171", 4
t = fluid.DistributeTranspiler()
# --- the document
t.transpile(trainer_id, pservers=pserver_endpoints, trainers=trainers, sync_mode=False)
