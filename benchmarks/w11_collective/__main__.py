"""W11: W1's network by two processes without pservers, beside torch's DDP in the same run.

    python -m benchmarks.w11_collective [--trainers 2] [--seconds 10] [--repeat N]

Both sides take the same batches, one BLAS thread a process, and update by SGD; torch's table is
`nn.Embedding(sparse=True)`, whose gradients DDP gathers. Both reduce over gloo.

    psrt_examples_per_s   total of all trainers after 20 warm-up steps, mode collective
    ddp_examples_per_s    the same of torch's DDP
    ratio                 psrt to DDP
    psrt_wait_share       share of a trainer's time in which it waits for others
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.measuring import harness, onlooker
from benchmarks.w1_ctr import Stopwatch, prepared
from benchmarks.workloads import ctr_data
from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.specs import Collective
from psrt.data.reading import Ahead
from psrt.trainer.inputs.job import load_job
from psrt.trainer.inputs.outputs import Outputs
from psrt.trainer.sessions.session_parts import cluster_for, run_of
from psrt.trainer.training import prepared_process

BATCHES, RATE, TABLE_RATE = 300, 0.1, 50.0


def run(args: argparse.Namespace) -> harness.Figures:
    sides = {}
    for side in ("ddp", "psrt"):
        (at,) = onlooker.free_addresses(1)
        common = [f"--seconds={args.seconds}", f"--trainers={args.trainers}", f"--at={at}"]
        roles = [[*common, f"--as-{side}={rank}"] for rank in range(args.trainers)]
        sides[side] = harness.together("w11_collective", roles)
    psrt, ddp = (sum(each["examples_per_s"] for each in sides[side]) for side in ("psrt", "ddp"))
    return {
        "workload": "W11",
        "trainers": args.trainers,
        "psrt_examples_per_s": round(psrt),
        "ddp_examples_per_s": round(ddp),
        "ratio": round(psrt / ddp, 3),
        "psrt_wait_share": round(sides["psrt"][0]["wait_share"], 3),
    }


def psrt_trainer(args: argparse.Namespace) -> harness.Figures:
    """Train in mode collective until the time of trainer 0 is over."""
    rank = args.as_psrt
    config = JobConfig(
        name="w11",
        program="../workloads/w1_job.py",
        params={"optimizer": "sgd", "learning_rate": RATE, "embedding_rate": TABLE_RATE},
        communication=Collective(args.bucket_kib),
        path=str(Path(__file__)),
    )
    settings = TrainerConfig(
        trainer_endpoints=(args.at,), trainers=args.trainers, trainer_id=rank, call_timeout_s=30.0
    )
    say = lambda text: print(text, file=sys.stderr)  # noqa: E731
    batches = ctr_data.w1_batches(rank, BATCHES)
    with prepared_process(settings, say):
        job = load_job(config)
        with (
            closing(run_of(settings, job)) as made,
            closing(cluster_for(settings, job, made, say)) as cluster,
        ):
            made.open(cluster.communicator, 60.0)
            outputs, watch = Outputs(job.model), Stopwatch(args.seconds)
            started = time.perf_counter()
            with Ahead(prepared(job, batches), 2) as ahead:
                made.run_from(
                    ahead,
                    outputs.names,
                    lambda batch, following, found: watch.step(outputs.read(found).loss),
                    stop=watch.is_over,
                )
            elapsed_s = time.perf_counter() - started
            waited_s = cluster.communicator.counters.snapshot()["exchange_s"]
            made.stop(60.0)
    return {**watch.figures(), "wait_share": waited_s / elapsed_s}


def torch_network() -> Any:
    """W1's network as a module of torch, with `table` and `layers`."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(ctr_data.ROWS, ctr_data.WIDTH, sparse=True)
            nn.init.uniform_(self.table.weight, -0.05, 0.05)
            widths = (ctr_data.SLOTS * ctr_data.WIDTH + ctr_data.DENSE, *ctr_data.HIDDEN)
            layers: list[nn.Module] = []
            for before, after in itertools.pairwise(widths):
                layers += [nn.Linear(before, after), nn.ReLU()]
            self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

        def forward(self, ids: Any, dense: Any) -> Any:
            return self.layers(torch.cat([self.table(ids).flatten(1), dense], dim=1))

    return Network()


def ddp_trainer(args: argparse.Namespace) -> harness.Figures:
    """Train torch's module under DDP for the same time."""
    import torch
    from torch import distributed, nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    host, _, port = args.at.rpartition(":")
    os.environ |= {"MASTER_ADDR": host, "MASTER_PORT": port}
    distributed.init_process_group("gloo", rank=args.as_ddp, world_size=args.trainers)

    network = torch_network()
    tables = [network.table.weight]
    module = DistributedDataParallel(network)
    groups = [
        {"params": list(network.layers.parameters()), "lr": RATE},
        {"params": tables, "lr": RATE * TABLE_RATE},
    ]
    optimizer, loss_of = torch.optim.SGD(groups, lr=RATE), nn.BCEWithLogitsLoss()
    batches = [
        tuple(map(torch.from_numpy, each)) for each in ctr_data.w1_batches(args.as_ddp, BATCHES)
    ]
    watch, flag = Stopwatch(args.seconds), torch.zeros(1)
    for number, (ids, dense, click) in enumerate(itertools.cycle(batches)):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(module(ids, dense), click)
        loss.backward()
        optimizer.step()
        watch.step(float(loss.detach()))
        if number % 20 == 19:  # both ranks end at one step
            flag[0] = float(watch.is_over.is_set())
            distributed.all_reduce(flag)
            if flag.item():
                break
    figures = watch.figures() if watch.is_over.is_set() else watch_ended(watch)
    distributed.destroy_process_group()
    return figures


def watch_ended(watch: Stopwatch) -> harness.Figures:
    """The figures of a rank that ended with the other, a few steps before its own time."""
    watch.is_over.set()
    return watch.figures()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--bucket-kib", type=int, default=1024)
    parser.add_argument("--at", default="", help=argparse.SUPPRESS)
    parser.add_argument("--as-psrt", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--as-ddp", type=int, default=None, help=argparse.SUPPRESS)
    known, _ = parser.parse_known_args()
    if known.as_psrt is not None:
        print(json.dumps(psrt_trainer(known)))
    elif known.as_ddp is not None:
        print(json.dumps(ddp_trainer(known)))
    else:
        harness.main(parser, run)
