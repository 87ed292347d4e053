"""Ranks and servers of every side as processes, one side after the other."""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import NamedTuple

from benchmarks.measuring import harness, onlooker, processes
from benchmarks.w1_ctr import WARM_UP_STEPS

MODES = {"ddp_async": "async", "ddp_sync": "sync"}
SERVED_MODES = {"served_async": "async", "served_sync": "sync"}
TORCH_GROUPS = ("torch_ddp", "torchrec")
SIDES = (*MODES, *SERVED_MODES, "torch_rpc", "torch_ddp", "graph_async")
"""Those of a run by default: TorchRec needs further packages."""
RATIOS = (
    ("served_async", "torch_rpc"),
    ("ddp_async", "torch_rpc"),
    ("served_async", "torch_ddp"),
    ("ddp_async", "torch_ddp"),
    ("ddp_sync", "torch_ddp"),
    ("served_sync", "torch_ddp"),
    ("served_async", "graph_async"),
    ("served_sync", "torchrec"),
    ("ddp_sync", "torchrec"),
    ("served_async", "torchrec"),
)


class Measured(NamedTuple):
    """Examples per second of all ranks, and CPU time of a rank's step with its share of servers."""

    examples_per_s: float
    cpu_ms_per_step: float


def run(args: argparse.Namespace) -> harness.Figures:
    """Examples per second of all ranks and CPU time by side, and ratios of psrt.torch to others."""
    found: dict[str, Measured] = {}
    for side in args.sides:
        found[side] = _side(side, args)
        rate, cpu_ms = found[side]
        print(f"{side:<14}{rate:>10.0f} examples/s{cpu_ms:>8.1f} ms", file=sys.stderr, flush=True)
    pairs = [pair for pair in RATIOS if found.keys() >= set(pair)]
    return {
        "examples_per_s": {side: round(each.examples_per_s) for side, each in found.items()},
        "cpu_ms_per_step": {side: round(each.cpu_ms_per_step, 2) for side, each in found.items()},
        "ratios": {
            f"{one} / {other}": round(found[one].examples_per_s / found[other].examples_per_s, 3)
            for one, other in pairs
        },
        "cpu_ratios": {
            f"{other} / {one}": round(found[other].cpu_ms_per_step / found[one].cpu_ms_per_step, 3)
            for one, other in pairs
        },
    }


def _side(side: str, args: argparse.Namespace) -> Measured:
    if side == "graph_async":
        return _graph(args)
    flags = [f"--seconds={args.seconds}", f"--ranks={args.ranks}", f"--pservers={args.pservers}"]
    flags += [f"--rpc={args.rpc}", f"--at={onlooker.free_addresses(1)[0]}", f"--side={side}"]
    ranks = [[*flags, f"--rank={rank}"] for rank in range(args.ranks)]
    if side == "torch_rpc":
        servers = [[*flags, f"--server={number}"] for number in range(args.pservers)]
        found = harness.together("w10_torch", [*ranks, *servers])
        return _total(found[: args.ranks], sum(each["cpu_s"] for each in found[args.ranks :]))
    if side in TORCH_GROUPS:
        return _total(harness.together("w10_torch", ranks), 0.0)
    with harness.daemons(args.pservers) as daemons:
        where = f"--endpoints={','.join(daemon.endpoint for daemon in daemons)}"
        cpu_s = -sum(processes.cpu_s(daemon.pid) for daemon in daemons)
        found = harness.together("w10_torch", [[*each, where] for each in ranks])
        cpu_s += sum(processes.cpu_s(daemon.pid) for daemon in daemons)
    return _total(found, cpu_s)


def _graph(args: argparse.Namespace) -> Measured:
    """W1 by psrt's own executor."""
    flags = ["--mode=async", "--no-gemm", f"--seconds={args.seconds}"]
    flags += [f"--trainers={args.ranks}", f"--pservers={args.pservers}"]
    found = harness.together("w1_ctr", [flags])[0]
    cpu_ms = found["trainer_cpu_ms_per_step"] + found["pserver_cpu_ms_per_step"]
    return Measured(float(found["examples_per_s"]), cpu_ms)


def _total(ranks: list[harness.Figures], servers_cpu_s: float) -> Measured:
    steps = sum(each["steps"] + WARM_UP_STEPS for each in ranks)
    cpu_ms = statistics.mean(each["cpu_ms_per_step"] for each in ranks)
    rate = sum(each["examples_per_s"] for each in ranks)
    return Measured(rate, cpu_ms + servers_cpu_s / steps * 1e3)
