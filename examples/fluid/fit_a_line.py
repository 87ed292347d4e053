"""Linear regression with `DistributeTranspiler`: one script, two roles, older variables.

    export PADDLE_PSERVER_IPS=127.0.0.1 PADDLE_PSERVER_PORT=6174 PADDLE_TRAINERS=2
    PADDLE_TRAINING_ROLE=PSERVER PADDLE_CURRENT_IP=127.0.0.1 python fit_a_line.py sync &
    PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=0 python fit_a_line.py sync &
    PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 python fit_a_line.py sync

Several pservers are `PADDLE_PSERVERS_IP_PORT_LIST` and, for each, `PADDLE_CURRENT_ENDPOINT`. The
argument is the mode: sync, half_async, async or geo. The data lie on a line, y = w · x + 3.
"""

from __future__ import annotations

import os
import sys

import numpy as np

import psrt.fluid as fluid

FEATURES, BATCH, STEPS, EPOCHS = 13, 20, 50, 3
FLAGS = {
    "sync": {},
    "half_async": {"half_async": True},
    "async": {},
    "geo": {"geo_sgd_mode": True, "geo_sgd_need_push_nums": 10},
}


def reader(trainer: int):
    """Batches of x (rows, 13) and y (rows, 1)."""
    weights = np.random.default_rng(1).uniform(-1, 1, (FEATURES, 1))
    draw = np.random.default_rng(100 + trainer)
    for _ in range(STEPS):
        x = draw.normal(size=(BATCH, FEATURES)).astype(np.float32)
        yield {"x": x, "y": (x @ weights + 3).astype(np.float32)}


def network():
    x = fluid.layers.data(name="x", shape=[FEATURES], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    predicted = fluid.layers.fc(input=x, size=1, act=None)
    cost = fluid.layers.square_error_cost(input=predicted, label=y)
    return fluid.layers.mean(cost)


def transpiled(mode: str, trainer: int) -> fluid.DistributeTranspiler:
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = mode == "sync"
    for name, value in FLAGS[mode].items():
        setattr(config, name, value)
    port = os.getenv("PADDLE_PSERVER_PORT", "6174")
    ips = [f"{ip}:{port}" for ip in os.getenv("PADDLE_PSERVER_IPS", "").split(",")]
    pservers = os.getenv("PADDLE_PSERVERS_IP_PORT_LIST", ",".join(ips))
    made = fluid.DistributeTranspiler(config=config)
    made.transpile(
        trainer,
        pservers=pservers,
        trainers=int(os.environ["PADDLE_TRAINERS"]),
        sync_mode=config.sync_mode,
    )
    return made


def main(mode: str) -> None:
    loss = network()
    fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    made = transpiled(mode, trainer)
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        own = f"{os.getenv('PADDLE_CURRENT_IP')}:{os.getenv('PADDLE_PSERVER_PORT', '6174')}"
        endpoint = os.getenv("PADDLE_CURRENT_ENDPOINT", own)
        program = made.get_pserver_program(endpoint)
        exe.run(made.get_startup_program(endpoint, program))
        exe.run(program)  # serves until all trainers have completed
        return
    exe.run(fluid.default_startup_program())
    program = made.get_trainer_program()
    for epoch in range(EPOCHS):
        losses = [exe.run(program, feed=feed, fetch_list=[loss])[0] for feed in reader(trainer)]
        print(f"epoch {epoch} loss {np.mean(losses):.4f}", flush=True)
    exe.close()


if __name__ == "__main__":
    main(sys.argv[1])
