"""Test AUC of psrt.torch beside PyTorch: one epoch of real clicks, a tenth of them set aside.

    python -m benchmarks.torch_accuracy train.tsv.gz [--models ctr_dnn dlrm] [--seeds 3]
                                        [--sides torch local sync async] [--rows N]

The table is one as Criteo published it: label, I1 … I13, C1 … C26. A seed sets initial values and
the order of rows, equal on all sides. Ranks divide each batch of 512 among them.

    torch   PyTorch alone, EmbeddingBag(sparse=True)
    local   psrt.torch in one process
    sync    2 ranks with DDP and 2 pservers, in mode sync; by `psrt launch`
    async   the same in mode async

    auc          by model and side, for each seed
    minus_torch  the largest distance from PyTorch of a mean over seeds, and as_claimed: at most
                 .002 in one process and in sync, .005 in async
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import harness
from benchmarks.torch_accuracy import clicks

SIDES = {"torch": 0.0, "local": 0.002, "sync": 0.002, "async": 0.005}
"""By name, the distance from torch that is claimed."""
TIMEOUT_S = 1800.0


def run(args: argparse.Namespace) -> harness.Figures:
    with tempfile.TemporaryDirectory(prefix="psrt-torch-accuracy-") as folder:
        table = Path(folder, "clicks.npz")
        clicks.save(clicks.read(args.table, args.rows), table)
        found = {model: _of_model(model, table, args) for model in args.models}
    return {"workload": "torch_accuracy", "seeds": args.seeds, "models": found}


def _of_model(model: str, table: Path, args: argparse.Namespace) -> harness.Figures:
    aucs: dict[str, list[float]] = {side: [] for side in args.sides}
    for seed in range(args.seeds):
        for side in args.sides:
            aucs[side].append(_auc(model, side, seed, table))
            print(f"{model}  seed {seed}  {side:<6}  {aucs[side][-1]:.4f}", file=sys.stderr)
    means = {side: statistics.fmean(found) for side, found in aucs.items()}
    return {
        side: {"auc": [round(each, 5) for each in found], **_judged(side, means)}
        for side, found in aucs.items()
    }


def _judged(side: str, means: dict[str, float]) -> harness.Figures:
    if side == "torch" or "torch" not in means:
        return {"mean": round(means[side], 5)}
    away = means[side] - means["torch"]
    is_near = abs(away) <= SIDES[side]
    return {"mean": round(means[side], 5), "minus_torch": round(away, 5), "as_claimed": is_near}


def _auc(model: str, side: str, seed: int, table: Path) -> float:
    """Train once, in processes of its own."""
    out = table.with_name("auc.json")
    own = [str(table), f"--as-side={side}", f"--model={model}", f"--seed={seed}", f"--out={out}"]
    script = str(Path(__file__).with_name("one_training.py"))
    command = [sys.executable, script, *own]
    if side in ("sync", "async"):
        logs = str(table.with_name(f"{model}-{side}-{seed}"))
        launch = [sys.executable, "-m", "psrt", "launch", "--log-dir", logs]
        command = [*launch, "--pservers=2", "--trainers=2", script, "--", *own]
    subprocess.run(command, check=True, stdout=sys.stderr, timeout=TIMEOUT_S)
    return float(json.loads(out.read_text())["auc"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path, help="Criteo's train.tsv, plain or .gz")
    parser.add_argument("--models", nargs="+", default=["ctr_dnn", "dlrm"])
    parser.add_argument("--sides", nargs="+", choices=tuple(SIDES), default=tuple(SIDES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="the first ones; 0 = all")
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: pip install -e .[torch]", file=sys.stderr)
        sys.exit(2)
    harness.main(parser, run)
