"""The next word from the four before it (Bengio et al. 2003), two replicas in each trainer.

    export TRAINING_ROLE PADDLE_PSERVERS_IP_PORT_LIST PADDLE_TRAINERS_NUM … as for ctr_dnn.py
    CPU_NUM=2 python word2vec.py half_async

Sentences are those of a small invented language, in which words of a kind stand in for one another;
trainer i has every n-th sentence from the i-th. Batches come from a Python reader by `DataFeeder`
and are computed by a compiled program.
"""

from __future__ import annotations

import random
import sys

import numpy as np

import psrt.fluid as fluid
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)

BEFORE, WIDTH, HIDDEN, BATCH, EPOCHS = 4, 16, 32, 64, 3
KINDS = ("cat dog cow fox hen", "eats sees wants finds", "big red old", "corn rice fish")
WORDS = " ".join(("the", *KINDS)).split()
STRATEGIES = {
    "sync": StrategyFactory.create_sync_strategy,
    "half_async": StrategyFactory.create_half_async_strategy,
    "async": StrategyFactory.create_async_strategy,
    "geo": lambda: StrategyFactory.create_geo_strategy(update_frequency=10),
}


def reader(trainer: int, trainers: int, sentences: int = 1500):
    """Lists of five word ids: four words and the one that follows."""
    draw = random.Random(1)
    for number in range(sentences):
        words = ["the", *(draw.choice(kind.split()) for kind in KINDS)] * 2
        ids = [WORDS.index(word) for word in words]
        if number % trainers == trainer:
            yield from (ids[at : at + BEFORE + 1] for at in range(len(ids) - BEFORE))


def batches(examples):
    batch = []
    for example in examples:
        batch.append([[word] for word in example])
        if len(batch) == BATCH:
            yield batch
            batch = []


def network():
    words = [fluid.layers.data(name=f"word{i}", shape=[1], dtype="int64") for i in range(BEFORE)]
    following = fluid.layers.data(name="next", shape=[1], dtype="int64")
    size = [len(WORDS), WIDTH]
    rows = [
        fluid.layers.embedding(input=word, size=size, is_sparse=True, param_attr="vectors")
        for word in words
    ]
    hidden = fluid.layers.fc(fluid.layers.concat(rows, axis=1), size=HIDDEN, act="sigmoid")
    predicted = fluid.layers.fc(hidden, size=len(WORDS), act="softmax")
    cost = fluid.layers.cross_entropy(input=predicted, label=following)
    return [*words, following], fluid.layers.mean(cost)


def train(strategy, feeds, loss) -> None:
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    fleet.init_worker()
    exe.run(fleet.startup_program)
    compiled = fluid.compiler.CompiledProgram(fleet.main_program).with_data_parallel(
        loss_name=loss.name,
        build_strategy=strategy.get_build_strategy(),
        exec_strategy=strategy.get_execute_strategy(),
    )
    feeder = fluid.DataFeeder(feed_list=feeds, place=place)
    for epoch in range(EPOCHS):
        losses = [
            np.mean(exe.run(compiled, feed=feeder.feed(batch), fetch_list=[loss.name])[0])
            for batch in batches(reader(fleet.worker_index(), fleet.worker_num()))
        ]
        print(f"epoch {epoch} loss {np.mean(losses):.4f}", flush=True)
    fleet.stop_worker()


def main(mode: str) -> None:
    feeds, loss = network()
    strategy = STRATEGIES[mode]()
    fleet.init(role_maker.PaddleCloudRoleMaker())
    optimizer = fluid.optimizer.Adam(learning_rate=0.01, lazy_mode=True)
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        train(strategy, feeds, loss)


if __name__ == "__main__":
    main(sys.argv[1])
