"""W10: tables of `psrt.torch` beside torch's own, in one process and as a cluster.

    python -m benchmarks.w10_torch [--part local|cluster] [--repeat N] [--transport unix|tcp]
                                   [--rpc tcp|shm] [--seconds 10] [--ranks 2] [--pservers 2]

local: a network of the shape of W1 (26 features, rows of 16, two dense layers). Each round times
all variants one after the other; figures are medians.

    steps_per_s  by SGD and Adam of pserver and torch (`EmbeddingBag(sparse=True)`)
    ratios       psrt to torch

cluster: W1's network by real processes, SGD, one thread each, one side after the other:

    ddp_async, ddp_sync        tables on pservers, dense gradients by DDP over gloo
    served_async, served_sync  tables and dense parameters on pservers (DenseOnServer)
    torch_rpc                  a parameter server of torch.distributed.rpc, updates on arrival
    torch_ddp                  DDP with EmbeddingBag(sparse=True)
    graph_async                psrt without torch: W1 in mode async
    torchrec                   TorchRec on CPUs; with --sides, needs torchrec and fbgemm-gpu-cpu

    examples_per_s   total of all ranks after 20 warm-up steps
    cpu_ms_per_step  CPU time of one step of a rank, with its share of that of servers
    ratios           psrt.torch to the others
    cpu_ratios       CPU time of the others to psrt.torch: steadier than rates on a busy host

`--transport` is how ranks reach pservers. `--rpc tcp` is what two machines use, `shm` what torch
takes on one host by itself; DDP uses TCP.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys

from benchmarks.measuring import harness
from benchmarks.w10_torch import cluster

PARTS = ("local", "cluster")
SIDES = tuple(dict.fromkeys((*cluster.SIDES, *cluster.TORCH_GROUPS)))


def run(args: argparse.Namespace) -> harness.Figures:
    found: harness.Figures = {"workload": "W10"}
    parts = args.part or PARTS
    if "local" in parts:
        from benchmarks.w10_torch import loops

        found["local"] = loops.run(args.steps, args.batch, args.rounds, args.threads)
    if "cluster" in parts:
        found["cluster"] = cluster.run(args)
    return found


def role(args: argparse.Namespace) -> harness.Figures:
    """The figures of one process of a cluster."""
    from benchmarks.w10_torch import rpc_side, sides

    places = args.rank, args.ranks, args.at
    if args.server is not None:
        return rpc_side.server(args.server, args.pservers, args.ranks, args.at, args.rpc)
    if args.side == "torch_rpc":
        meeting = args.pservers, args.ranks, args.at, args.rpc
        return rpc_side.worker(args.rank, *meeting, args.seconds)
    if args.side == "torch_ddp":
        return sides.ddp_rank(*places, args.seconds)
    if args.side == "torchrec":
        from benchmarks.w10_torch import torchrec_side

        return torchrec_side.rank_of(*places, args.seconds)
    where = args.seconds, args.endpoints
    if args.side in cluster.SERVED_MODES:
        return sides.served_rank(*places, *where, cluster.SERVED_MODES[args.side])
    return sides.psrt_rank(*places, *where, cluster.MODES[args.side])


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="default: both")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5, help="of the local part")
    parser.add_argument("--threads", type=int, default=1, help="of torch's operations, locally")
    parser.add_argument("--sides", nargs="+", default=cluster.SIDES, choices=SIDES)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pservers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rpc", choices=("tcp", "shm"), default="tcp")
    parser.add_argument("--side", default="", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--server", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--at", default="", help=argparse.SUPPRESS)
    parser.add_argument("--endpoints", default="", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: pip install -e .[torch]", file=sys.stderr)
        sys.exit(2)
    parser = parser_of()
    known, _ = parser.parse_known_args()
    if known.side:
        print(json.dumps(role(known)), flush=True)
        if known.side == "torchrec":
            os._exit(0)  # threads of TorchRec can end the interpreter's own end by a signal
    else:
        harness.main(parser, run)
