"""Manual for distributed training with Fluid: "Turn On Memory Optimization"."""

# --- left out by the document
import psrt.fluid as fluid

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
hidden = fluid.layers.fc(input=fluid.layers.fc(input=x, size=8, act="relu"), size=8, act="relu")
loss = fluid.layers.mean(fluid.layers.fc(input=hidden, size=1))
fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)
trainer_id, pserver_endpoints, trainers = 0, "127.0.0.1:6170,127.0.0.1:6171", 1
started = []
for role in ("PSERVER", "TRAINER"):
    pass
role = "TRAINER"
# --- the document
if role == "TRAINER":
        fluid.memory_optimize(fluid.default_main_program(), skip_grads=True)
t = fluid.DistributeTranspiler()
t.transpile(trainer_id, pservers=pserver_endpoints, trainers=trainers)
if role == "PSERVER":
        # start pserver here
# --- left out by the document
        pass
# --- the document
elif role == "TRAINER":
        # start trainer here
# --- left out by the document
        trainer_program = t.get_trainer_program()
