"""One trainer through Fluid's API; `psrt launch … worker.py -- ARGUMENTS` starts it.

Trainer 0 writes the model and the figures of the training into `--out`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psrt.fluid as fluid
from benchmarks.fluid_ctr import cpu_time
from benchmarks.fluid_ctr.network import Clicks
from benchmarks.fluid_ctr.settings import DENSE, HEIGHT, WIDTH
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)

EVERY = 10
"""Steps between two readings of the clock."""


class Watch:
    """Times of steps: the first reading is behind those of compiling and connecting."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, values: Any) -> None:
        self.times.append(time.perf_counter())

    def steps(self) -> int:
        return EVERY * len(self.times)

    def steps_per_s(self) -> float:
        return EVERY * (len(self.times) - 1) / (self.times[-1] - self.times[0])


def main(args: argparse.Namespace) -> None:
    network = _of_zoo(args.zoo) if args.zoo else Clicks(args.range)
    sizes = SimpleNamespace(
        dense_feature_dim=DENSE, sparse_feature_dim=HEIGHT, embedding_size=WIDTH
    )
    inputs = network.input_data(sizes)
    loss, auc = network.net(inputs, sizes)
    fleet.init(role_maker.PaddleCloudRoleMaker())
    optimizer = fluid.optimizer.Adam(args.rate)
    fleet.distributed_optimizer(optimizer, _strategy(args)).minimize(loss)
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    watch = Watch()
    for epoch in range(args.epochs):
        if epoch:
            cpu_time.begin()
        before = watch.steps()
        exe.train_from_dataset(
            program=fleet.main_program,
            dataset=_dataset(args, inputs),
            fetch_list=[loss, auc],
            print_period=EVERY,
            fetch_handler=watch,
        )
    figures = {
        "examples_per_s": watch.steps_per_s() * args.batch,
        "cpu_us_per_example": cpu_time.used((watch.steps() - before) * args.batch),
    }
    if fleet.is_first_worker():
        _save(exe, inputs, args.out)
    (args.out / f"figures-{fleet.worker_index()}.json").write_text(json.dumps(figures))
    fleet.stop_worker()


def _strategy(args: argparse.Namespace) -> Any:
    if args.mode == "geo":
        return StrategyFactory.create_geo_strategy(args.update_frequency)
    return getattr(StrategyFactory, f"create_{args.mode}_strategy")()


def _dataset(args: argparse.Namespace, inputs: list[Any]) -> Any:
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(inputs)
    dataset.set_batch_size(args.batch)
    dataset.set_thread(1)
    files = sorted(str(path) for path in args.data.glob("train-*"))
    dataset.set_filelist(fleet.split_files(files))
    return dataset


def _save(exe: Any, inputs: list[Any], out: Path) -> None:
    """Write the model that predicts the probabilities of both classes."""
    block = fleet.main_program.global_block()
    (loss,) = [op for op in block.ops if op.type == "cross_entropy"]
    predicted = block.var(loss.input("input")[0])
    names = [variable.name for variable in inputs[:-1]]
    fleet.save_inference_model(exe, str(out / "model"), names, [predicted])


def _of_zoo(folder: Path) -> Any:
    """Return the network of a copy of the model zoo's folder `ctr/dnn`, which imports paddle."""
    fluid.install_as_paddle()
    spec = importlib.util.spec_from_file_location("network_conf", folder / "network_conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CTR()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--zoo", type=Path, default=None)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--range", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--update-frequency", type=int, required=True)
    main(parser.parse_args())
