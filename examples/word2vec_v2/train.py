"""The next word from the four before it (Bengio et al. 2003), as one trainer of a cluster.

    python prepare.py
    psrt pserver --port=7164 --ports_num=1 --ports_num_for_sparse=1 --num_gradient_servers=2 &
    export PADDLE_INIT_PORT=7164 PADDLE_INIT_NUM_GRADIENT_SERVERS=2
    PADDLE_INIT_TRAINER_ID=1 python train.py & PADDLE_INIT_TRAINER_ID=0 python train.py

Which trainer this is comes from the environment, or from arguments of `psrt.init`. Trainer i reads
the files whose number, modulo the number of trainers, is i; the number of its steps may differ from
the others'. Trainer 0 tests with what all of them have learned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

import psrt
from psrt import layers
from psrt.graph.program import Var

TRAIN, TEST = "train_data_dir", "test_data_dir"
BEFORE, WIDTH, HIDDEN, BATCH, PASSES = 4, 16, 32, 64, 2


def files_of(directory: str, trainer: int, trainers: int) -> list[str]:
    """By the number after the dash."""
    names = sorted(os.listdir(directory))
    mine = [name for name in names if int(name.split("-")[1]) % trainers == trainer]
    return [os.path.join(directory, name) for name in mine]


def examples(files: list[str], word_dict: dict[str, int]) -> Iterator[list[int]]:
    """Ids of five words in a row."""
    for file in files:
        with open(file) as lines:
            for line in lines:
                ids = [word_dict.get(word, word_dict["<unk>"]) for word in line.split()]
                yield from (ids[at : at + BEFORE + 1] for at in range(len(ids) - BEFORE))


def batches(files: list[str], word_dict: dict[str, int]) -> Iterator[dict[str, np.ndarray]]:
    rows: list[list[int]] = []
    for example in examples(files, word_dict):
        rows.append(example)
        if len(rows) == BATCH:
            ids = np.array(rows, np.int64)
            yield {"words": ids[:, :BEFORE], "next": ids[:, BEFORE:]}
            rows = []


def network(vocabulary: int) -> Var:
    words = layers.data("words", shape=(BEFORE,), dtype="int64")
    following = layers.data("next", shape=(1,), dtype="int64")
    vectors = layers.flatten(layers.embedding(words, (vocabulary, WIDTH), param="vectors"))
    hidden = layers.fc(vectors, HIDDEN, act="tanh")
    return layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, vocabulary), following))


def main() -> None:
    role = psrt.init(use_gpu=False)
    with open("word_dict.txt") as lines:
        word_dict = {word: number for number, word in enumerate(lines.read().split())}
    with psrt.program(seed=1) as program:
        loss = network(len(word_dict))
        psrt.optimizer.Adam(0.01).minimize(loss)

    transpiler = psrt.DistributeTranspiler()
    transpiler.transpile(program, role.index, role.endpoints, role.trainers)
    files = files_of(TRAIN, role.index, role.trainers)
    print(f"trainer {role.index} of {role.trainers}: {' '.join(files)}", flush=True)
    with psrt.ConnectedExecutor(transpiler.get_trainer_program()) as executor:
        for number in range(PASSES):
            done = executor.run_from(batches(files, word_dict), [loss])
            print(f"pass {number}: loss {float(done.fetched[0]):.3f}", flush=True)
        if role.index == 0:
            executor.wait_for_others()
            tests = psrt.Executor(program.clone(for_test=True), executor.scope)
            costs = [
                float(tests.run(feed, [loss], roles=("forward",))[0])
                for feed in batches(files_of(TEST, 0, 1), word_dict)
            ]
            print(f"test: loss {np.mean(costs):.3f}", flush=True)


if __name__ == "__main__":
    main()
