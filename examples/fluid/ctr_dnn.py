"""Click-through rate with `fleet` and `train_from_dataset`; every process runs this one file.

    psrt data synth-ctr --out data --rows 8000 --test-rows 1000 --files 4 --ids-per-slot 50

    export PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6170,127.0.0.1:6171 PADDLE_TRAINERS_NUM=2
    TRAINING_ROLE=PSERVER POD_IP=127.0.0.1 PADDLE_PORT=6170 python ctr_dnn.py data sync &
    TRAINING_ROLE=PSERVER POD_IP=127.0.0.1 PADDLE_PORT=6171 python ctr_dnn.py data sync &
    TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=0 python ctr_dnn.py data sync &
    TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 python ctr_dnn.py data sync

The second argument is the mode: sync, half_async, async or geo. A trainer prints its mean loss of
each epoch; pservers end by themselves when both trainers have.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import psrt.fluid as fluid
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)

SLOTS, DENSE, WIDTH, IDS = 26, 13, 8, 1 << 40
BATCH, EPOCHS = 64, 3
RATES = {"sync": 0.05, "geo": 0.05, "half_async": 0.02, "async": 0.02}
"""Asynchronous pservers apply every gradient by itself: each step of a trainer weighs more."""
STRATEGIES = {
    "sync": StrategyFactory.create_sync_strategy,
    "half_async": StrategyFactory.create_half_async_strategy,
    "async": StrategyFactory.create_async_strategy,
    "geo": lambda: StrategyFactory.create_geo_strategy(update_frequency=10),
}


def network():
    """The vars that are fed, in the order of a line of the data, and the loss."""
    click = fluid.layers.data(name="click", shape=[1], dtype="float32")
    dense = fluid.layers.data(name="dense_input", shape=[DENSE], dtype="float32")
    ids = [fluid.layers.data(name=f"C{i}", shape=[1], dtype="int64") for i in range(1, SLOTS + 1)]
    table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Uniform(-0.01, 0.01))
    rows = [
        fluid.layers.embedding(
            input=slot, size=[IDS, WIDTH], is_sparse=True, is_distributed=True, param_attr=table
        )
        for slot in ids
    ]
    layer = fluid.layers.concat([*rows, dense], axis=1)
    for size in (64, 32):
        layer = fluid.layers.fc(input=layer, size=size, act="relu")
    logit = fluid.layers.fc(input=layer, size=1)
    cost = fluid.layers.sigmoid_cross_entropy_with_logits(x=logit, label=click)
    return [click, dense, *ids], fluid.layers.mean(cost)


def train(directory: Path, feeds, loss) -> None:
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(feeds)
    dataset.set_batch_size(BATCH)
    dataset.set_thread(1)
    dataset.set_filelist(fleet.split_files([str(p) for p in sorted(directory.glob("train-*"))]))
    for epoch in range(EPOCHS):
        losses = []
        exe.train_from_dataset(
            program=fleet.main_program,
            dataset=dataset,
            fetch_list=[loss],
            print_period=1,
            fetch_handler=losses.append,
        )
        print(f"epoch {epoch} loss {np.mean(losses):.4f}", flush=True)
    fleet.stop_worker()


def main(directory: Path, mode: str) -> None:
    feeds, loss = network()
    fleet.init(role_maker.PaddleCloudRoleMaker())
    optimizer = fluid.optimizer.Adagrad(learning_rate=RATES[mode])
    fleet.distributed_optimizer(optimizer, STRATEGIES[mode]()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        train(directory, feeds, loss)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
