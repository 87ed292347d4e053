"""Manual for distributed training with Fluid: "Training in the Parameter Server Manner".

The document has lost its addresses, and spells `Pserver_prog` with a capital. Values of this
process come from the environment, as its table of parameters suggests.
"""

# --- left out by the document
import os

import numpy as np

import psrt.fluid as fluid

x = fluid.layers.data(name="x", shape=[13], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
predicted = fluid.layers.fc(input=x, size=1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))
fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
# --- the document
role = "PSERVER"
trainer_id = 0 # get actual trainer id from cluster
pserver_endpoints = ","
current_endpoint = "" # get actual current endpoint
trainers = 4
# --- left out by the document
role = os.environ["ROLE"]
trainer_id = int(os.environ["TRAINER_ID"])
pserver_endpoints = os.environ["PSERVERS"]
current_endpoint = os.environ["ENDPOINT"]
trainers = int(os.environ["TRAINERS"])
# --- the document
t = fluid.DistributeTranspiler()
t.transpile(trainer_id, pservers=pserver_endpoints, trainers=trainers)
if role == "PSERVER":
            pserver_prog = t.get_pserver_program(current_endpoint)
# --- left out by the document
            Pserver_prog = pserver_prog
# --- the document
            pserver_startup = t.get_startup_program(current_endpoint,Pserver_prog)
# --- left out by the document
            exe.run(pserver_startup)
            exe.run(pserver_prog)
# --- the document
elif role == "TRAINER":
# --- left out by the document
            exe.run(fluid.default_startup_program())
            trainer_prog = t.get_trainer_program()
            rows = np.random.default_rng(trainer_id).normal(size=(32, 13)).astype(np.float32)
            feed = {"x": rows, "y": rows.sum(axis=1, keepdims=True)}
            losses = [float(exe.run(trainer_prog, feed, [loss])[0][0]) for _ in range(40)]
            exe.close()
            assert losses[-1] < 0.5 * losses[0], losses
