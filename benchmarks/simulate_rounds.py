"""Time of a synchronous round with T trainers and S pservers, computed with queues.

    python -m benchmarks.simulate_rounds [--trainers 1,8,64] [--pservers 4] [--slow-share 0.01] …

    trainer computes ─▶ its CPU ─▶ its link ┄▶ pserver's link ─▶ its CPU ─┐ all T are there: apply
    next step        ◀─ its CPU ◀─ its link ◀┄ pserver's link ◀─ its CPU ◀┘

Every box is a first-come-first-served queue; Lindley's recursion (1952) gives departures from
arrivals. A trainer begins its next step after the replies of all S pservers. Only the time of a
step is random: log-normal jitter, and occasional stragglers. The model omits lost packets,
switches, and several trainers on one host.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import harness

SETTLING = 3
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """The costs of one round; times are seconds, bytes are those of one call.

    A step takes `step_s` · e^(`jitter` · N(0, 1)), and with probability `slow_share` it takes
    `slow_factor` times as long. `pserver_call_s` is the time of a request and its reply, half for
    each. `apply_s` is the time of closing the round, per trainer.
    """

    trainers: int
    pservers: int
    step_s: float
    up_bytes: float
    down_bytes: float
    trainer_call_s: float
    pserver_call_s: float
    apply_s: float
    link_bytes_per_s: float = 1.25e9
    latency_s: float = 50e-6
    jitter: float = 0.05
    slow_share: float = 0.0
    slow_factor: float = 3.0


def fifo(arrivals: F64, service_s: float, axis: int) -> F64:
    """Departure times from servers that take `service_s` for each arrival.

    Queues run along `axis`, one for each index of the other axis. With c the service times summed
    in the order of arrival, the k-th leaves at c_k + max over j ≤ k of (arrival_j − c_(j−1)).
    """
    order = np.argsort(arrivals, axis=axis, kind="stable")
    in_order = np.take_along_axis(arrivals, order, axis)
    numbers = np.expand_dims(np.arange(arrivals.shape[axis]), 1 - axis) * service_s
    left = numbers + service_s + np.maximum.accumulate(in_order - numbers, axis=axis)
    out = np.empty_like(arrivals)
    np.put_along_axis(out, order, left, axis)
    return out


def exchange(computed: F64, costs: Round) -> F64:
    """Times of the last reply to each trainer, from the ends of computing (trainers,)."""
    trainer_s, pserver_s = costs.trainer_call_s / 2, costs.pserver_call_s / 2
    at = np.repeat(computed[:, None], costs.pservers, axis=1)  # (trainers, pservers)
    at = fifo(at, trainer_s, axis=1)
    at = carried(at, costs.up_bytes, costs, sender=1)
    at = fifo(at, pserver_s, axis=0)
    applied = at.max(axis=0) + costs.trainers * costs.apply_s
    at = np.repeat(applied[None, :], costs.trainers, axis=0)
    at = fifo(at, pserver_s, axis=0)
    at = carried(at, costs.down_bytes, costs, sender=0)
    return fifo(at, trainer_s, axis=1).max(axis=1)


def carried(at: F64, size_bytes: float, costs: Round, sender: int) -> F64:
    """Arrival times of messages sent at `at`, over the links of sender and receiver.

    The sender's queues are along axis `sender`. A message passes both links at once: the receiver's
    link is busy from its first byte.
    """
    link_s = size_bytes / costs.link_bytes_per_s
    first_byte = fifo(at, link_s, sender) - link_s + costs.latency_s
    return fifo(first_byte, link_s, 1 - sender)


def round_times(costs: Round, rounds: int = 50, seed: int = 1) -> F64:
    """Seconds of each round of trainer 0, (rounds,), without the first `SETTLING` rounds.

    The first rounds differ: later, replies leave a pserver one by one, so the next requests arrive
    one by one and pass the link while other trainers compute.
    """
    rng = np.random.default_rng(seed)
    ready = np.zeros(costs.trainers)
    ends = [0.0]
    for _ in range(SETTLING + rounds):
        ready = exchange(ready + step_times(costs, rng), costs)
        ends.append(float(ready[0]))
    return np.diff(ends)[SETTLING:]


def step_times(costs: Round, rng: np.random.Generator) -> F64:
    """Random times of one step of each trainer."""
    times = costs.step_s * np.exp(costs.jitter * rng.standard_normal(costs.trainers))
    return times * np.where(rng.random(costs.trainers) < costs.slow_share, costs.slow_factor, 1.0)


def figures(costs: Round, rounds: int = 50) -> harness.Figures:
    """Time of a round, its parts without computing, and the busy share of trainers."""
    mean = float(round_times(costs, rounds).mean())
    alone = float(round_times(replace(costs, jitter=0.0, slow_share=0.0), rounds=1)[0])
    return {
        "trainers": costs.trainers,
        "pservers": costs.pservers,
        "round_ms": round(mean * 1e3, 2),
        "exchange_ms": round((alone - costs.step_s) * 1e3, 2),
        "waiting_for_others_ms": round((mean - alone) * 1e3, 2),
        "busy": round(costs.step_s / mean, 3),
    }


def run(args: argparse.Namespace) -> harness.Figures:
    sizes = [int(text) for text in args.trainers.split(",")]
    dense, rows = args.dense_mb * 1e6 / args.pservers, args.rows_mb * 1e6 / args.pservers
    made = [
        Round(
            trainers,
            args.pservers,
            args.step_ms / 1e3,
            dense + rows,
            dense + rows,
            args.call_us / 1e6,
            args.call_us / 1e6,
            args.apply_us / 1e6 / args.pservers,
            args.link_gbit * 1e9 / 8,
            jitter=args.jitter,
            slow_share=args.slow_share,
            slow_factor=args.slow_factor,
        )
        for trainers in sizes
    ]
    return {"workload": "simulated rounds", "rounds": [figures(costs) for costs in made]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trainers", default="1,2,8,32,128,512,1000", help="numbers, by commas")
    parser.add_argument("--pservers", type=int, default=4)
    parser.add_argument("--step-ms", type=float, default=12.5)
    parser.add_argument("--dense-mb", type=float, default=2.0, help="of a trainer, each way")
    parser.add_argument("--rows-mb", type=float, default=0.5, help="of a trainer, each way")
    parser.add_argument("--call-us", type=float, default=200.0, help="CPU of a call, each side")
    parser.add_argument("--apply-us", type=float, default=2000.0, help="of one trainer's gradients")
    parser.add_argument("--link-gbit", type=float, default=10.0)
    parser.add_argument("--jitter", type=float, default=0.05)
    parser.add_argument("--slow-share", type=float, default=0.0)
    parser.add_argument("--slow-factor", type=float, default=3.0)
    harness.main(parser, run)
