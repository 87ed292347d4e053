"""One script, two roles: the environment says whether a copy of it is a pserver or a trainer.

Two pservers and two trainers on one host; on several, write their addresses instead:

    export PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6170,127.0.0.1:6171 PADDLE_TRAINERS_NUM=2
    TRAINING_ROLE=PSERVER POD_IP=127.0.0.1 PADDLE_PORT=6170 python two_roles.py &
    TRAINING_ROLE=PSERVER POD_IP=127.0.0.1 PADDLE_PORT=6171 python two_roles.py &
    TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=0 python two_roles.py &
    TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 python two_roles.py
    wait

Trainers wait for pservers that are not up yet, and pservers end once both trainers have completed.
MODE=async, half_async or geo before the lines trains without rounds, all processes alike. Every
trainer makes up its own clicks; with real data it would read its own files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

import psrt
from psrt import layers

MODES: dict[str, dict[str, bool | int]] = {
    "sync": {"sync_mode": True},
    "async": {"sync_mode": False},
    "half_async": {"sync_mode": False, "half_async": True},
    "geo": {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 10},
}
STEPS, BATCH = 200, 64

with psrt.program() as program:
    ids = layers.data("ids", shape=(2,), dtype="int64")
    x = layers.data("x", shape=(3,))
    click = layers.data("click")
    rows = layers.embedding(ids, (100, 8), is_sparse=True, is_distributed=True)
    hidden = layers.fc([layers.flatten(rows), x], 16, act="relu")
    logit = layers.fc(hidden, 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    psrt.optimizer.Adagrad(learning_rate=0.05).minimize(loss)


def batches(seed: int) -> Iterator[dict[str, np.ndarray]]:
    """Clicks that depend on the parity of the first id and on the first number."""
    random = np.random.default_rng(seed)
    for _ in range(STEPS):
        ids = random.integers(0, 100, (BATCH, 2))
        x = random.normal(size=(BATCH, 3)).astype(np.float32)
        score = np.where(ids[:, :1] % 2 == 0, 2.0, -2.0) + x[:, :1]
        click = random.random((BATCH, 1)) < 1 / (1 + np.exp(-score))
        yield {"ids": ids, "x": x, "click": click.astype(np.float32)}


config = psrt.DistributeTranspilerConfig()
for name, value in MODES[os.environ.get("MODE", "sync")].items():
    setattr(config, name, value)
transpiler = psrt.DistributeTranspiler(config)
trainer_id = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
transpiler.transpile(
    program,
    trainer_id,
    pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
    trainers=int(os.environ["PADDLE_TRAINERS_NUM"]),
)

if os.environ["TRAINING_ROLE"] == "PSERVER":
    endpoint = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
    psrt.serve(transpiler.get_pserver_program(endpoint))
else:
    losses: list[float] = []
    with psrt.ConnectedExecutor(transpiler.get_trainer_program()) as executor:
        executor.run_from(batches(trainer_id), [loss], lambda found: losses.append(found[0]))
    first, last = np.mean(losses[:20]), np.mean(losses[-20:])
    print(f"loss of the first steps {first:.4f}, of the last {last:.4f}")
