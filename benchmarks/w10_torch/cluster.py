"""Ranks and servers of every side as processes, one side after the other."""

from __future__ import annotations

import argparse
import sys

from benchmarks.measuring import harness, onlooker

MODES = {"ddp_async": "async", "ddp_sync": "sync"}
SERVED_MODES = {"served_async": "async", "served_sync": "sync"}
SIDES = (*MODES, *SERVED_MODES, "torch_rpc", "torch_ddp", "graph_async")
RATIOS = (
    ("served_async", "torch_rpc"),
    ("ddp_async", "torch_rpc"),
    ("served_async", "torch_ddp"),
    ("ddp_async", "torch_ddp"),
    ("ddp_sync", "torch_ddp"),
    ("served_sync", "torch_ddp"),
    ("served_async", "graph_async"),
)


def run(args: argparse.Namespace) -> harness.Figures:
    """Examples per second of all ranks by side, and the ratios of psrt.torch to others."""
    rates = {}
    for side in args.sides:
        rates[side] = _side(side, args)
        print(f"{side:<14}{rates[side]:>10.0f} examples/s", file=sys.stderr, flush=True)
    return {
        "examples_per_s": {side: round(rate) for side, rate in rates.items()},
        "ratios": {
            f"{one} / {other}": round(rates[one] / rates[other], 3)
            for one, other in RATIOS
            if {one, other} <= rates.keys()
        },
    }


def _side(side: str, args: argparse.Namespace) -> float:
    if side == "graph_async":
        return _graph(args)
    flags = [f"--seconds={args.seconds}", f"--ranks={args.ranks}", f"--pservers={args.pservers}"]
    flags += [f"--rpc={args.rpc}", f"--at={onlooker.free_addresses(1)[0]}", f"--side={side}"]
    ranks = [[*flags, f"--rank={rank}"] for rank in range(args.ranks)]
    if side == "torch_rpc":
        servers = [[*flags, f"--server={number}"] for number in range(args.pservers)]
        return _total(harness.together("w10_torch", [*ranks, *servers])[: args.ranks])
    if side == "torch_ddp":
        return _total(harness.together("w10_torch", ranks))
    with harness.pservers(args.pservers) as endpoints:
        where = f"--endpoints={','.join(endpoints)}"
        return _total(harness.together("w10_torch", [[*each, where] for each in ranks]))


def _graph(args: argparse.Namespace) -> float:
    """W1 by psrt's own executor."""
    flags = ["--mode=async", "--no-gemm", f"--seconds={args.seconds}"]
    flags += [f"--trainers={args.ranks}", f"--pservers={args.pservers}"]
    return float(harness.together("w1_ctr", [flags])[0]["examples_per_s"])


def _total(ranks: list[harness.Figures]) -> float:
    return float(sum(each["examples_per_s"] for each in ranks))
