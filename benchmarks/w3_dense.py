"""W3: one dense parameter of 16 M float32, pushed, updated by SGD and pulled by one trainer.

    python -m benchmarks.w3_dense [--carrier stream|grpc] [--seconds 8] [--elements 16777216]
                                  [--parameters 1] [--repeat N]

A step computes a gradient from the values in two passes, like the peers' steps. It ends when the
updated values are in an array of the trainer. The mode is sync. `--parameters` cuts the elements
into several parameters.

    mb_per_s_each_way           bytes of the parameter × steps ÷ time
    exchange_mb_per_s_each_way  that speed without the time of computing gradients
    socket_mb_per_s             speed of a bare socket one way, measured first
    share_of_socket             `mb_per_s_each_way` ÷ `socket_mb_per_s`; 1 means that both
                                directions of the socket are busy all the time
"""

from __future__ import annotations

import argparse
import os
import time

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from benchmarks.limits import socket_figures
from benchmarks.workloads.trainers import TIMEOUT_S, Who, client_of
from psrt.communicator import factory
from psrt.communicator.base import Communicator
from psrt.core.specs import ConstantRate, Sgd, Sync, Uniform
from psrt.core.types import F32
from psrt.graph.program import Parameter
from psrt.partition.plan import build_plan

ELEMENTS = 16 << 20
WARM_UP_STEPS = 3


def run(args: argparse.Namespace) -> harness.Figures:
    limits = socket_figures(args.socket_seconds)
    with harness.pservers(1) as endpoints:
        plan = build_plan(parameters(args), endpoints, mode=Sync())
        client = client_of(plan, Who(carrier=args.carrier), Sync())
        communicator = factory.make(Sync(), plan, [client], call_timeout_s=TIMEOUT_S)
        try:
            figures = measure(communicator, args)
        finally:
            communicator.close()
            client.close()
    share = figures["mb_per_s_each_way"] / limits["socket_mb_per_s"]
    return {"workload": "W3", **figures, **limits, "share_of_socket": round(share, 3)}


def parameters(args: argparse.Namespace) -> list[Parameter]:
    size = args.elements // args.parameters
    return [
        Parameter(
            f"w{number}",
            (size,),
            initializer=Uniform(-1.0, 1.0),
            seed=number,
            optimizer=Sgd(),
            learning_rate=ConstantRate(1e-3),
        )
        for number in range(args.parameters)
    ]


def measure(communicator: Communicator, args: argparse.Namespace) -> harness.Figures:
    dense = communicator.start(TIMEOUT_S)
    gradients: dict[str, F32] = {name: np.empty_like(values) for name, values in dense.items()}
    for _ in range(WARM_UP_STEPS):
        make(gradients, dense)
        dense = communicator.finish(gradients).dense
    steps, making_s, started, cpu = 0, 0.0, time.perf_counter(), time.process_time()
    while (began := time.perf_counter()) - started < args.seconds:
        make(gradients, dense)
        making_s += time.perf_counter() - began
        dense = communicator.finish(gradients).dense
        steps += 1
    seconds = time.perf_counter() - started
    step_bytes = sum(values.nbytes for values in dense.values())
    return {
        "carrier": args.carrier,
        "parameters": args.parameters,
        "mb_per_s_each_way": round(steps * step_bytes / seconds / 1e6),
        "exchange_mb_per_s_each_way": round(steps * step_bytes / (seconds - making_s) / 1e6),
        "step_ms": round(seconds / steps * 1e3, 2),
        "cpu_ms_per_step": round((time.process_time() - cpu) / steps * 1e3, 2),
        "steps": steps,
    }


def make(gradients: dict[str, F32], dense: dict[str, F32]) -> None:
    for name, values in dense.items():
        np.multiply(values, np.float32(1e-3), out=gradients[name])
        gradients[name] += np.float32(1e-6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    parser.add_argument("--elements", type=int, default=ELEMENTS)
    parser.add_argument("--parameters", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--socket-seconds", type=float, default=1.0)
    harness.main(parser, run)
