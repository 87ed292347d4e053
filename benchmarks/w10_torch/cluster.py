"""Ranks and servers of every side as processes, one side after the other."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.measuring import harness, onlooker

MODES = {"psrt_async": "async", "psrt_sync": "sync"}
SIDES = (*MODES, "torch_rpc", "torch_ddp", "graph_async")
RATIOS = {
    "async / torch_rpc": ("psrt_async", "torch_rpc"),
    "async / torch_ddp": ("psrt_async", "torch_ddp"),
    "sync / torch_ddp": ("psrt_sync", "torch_ddp"),
    "async / graph": ("psrt_async", "graph_async"),
}


def run(args: argparse.Namespace) -> harness.Figures:
    """Examples per second of all ranks by side, losses, and the ratios of psrt.torch to others."""
    found = {side: _side(side, args) for side in args.sides}
    rates = {side: figures["examples_per_s"] for side, figures in found.items()}
    return {
        "examples_per_s": {side: round(rate) for side, rate in rates.items()},
        "loss_at_250_steps": {side: each["loss_at_250_steps"] for side, each in found.items()},
        "ratios": {
            name: round(rates[one] / rates[other], 3)
            for name, (one, other) in RATIOS.items()
            if {one, other} <= rates.keys()
        },
    }


def _side(side: str, args: argparse.Namespace) -> harness.Figures:
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


def _graph(args: argparse.Namespace) -> harness.Figures:
    """W1 by psrt's own executor."""
    flags = ["--mode=async", "--no-gemm", f"--seconds={args.seconds}"]
    flags += [f"--trainers={args.ranks}", f"--pservers={args.pservers}"]
    return dict(harness.together("w1_ctr", [flags])[0])


def _total(ranks: list[harness.Figures]) -> harness.Figures:
    losses = [each["loss_at_250_steps"] for each in ranks]
    loss: Any = None if None in losses else round(sum(losses) / len(losses), 4)
    total = sum(each["examples_per_s"] for each in ranks)
    return {"examples_per_s": total, "loss_at_250_steps": loss}
