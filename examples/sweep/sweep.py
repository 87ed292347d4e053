"""A search for rates and widths of `examples/adult`, by Optuna: each trial is a `psrt.fit`.

    pip install optuna
    python examples/adult/make_data.py examples/adult/data
    python examples/sweep/sweep.py --trials 20

A quarter of the training files is held back. After each epoch a trial reports its AUC on them, and
ends if it is worse than the median of the others at that epoch. The test files stay unused: the
last line is the command that trains with the best values and tests once. With `--storage
sqlite:///sweep.db` several processes share one search, and one that was ended goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna

import psrt
from psrt.trainer.measuring import EpochLosses

EXAMPLES = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(EXAMPLES / "adult"))
from wide_deep import build  # noqa: E402 - an example beside this one


def suggested(trial: optuna.Trial) -> dict[str, Any]:
    """Values of one trial for arguments of `build`."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 0.002, 0.2, log=True),
        "embedding": trial.suggest_categorical("embedding", [4, 8, 16]),
        "hidden": [trial.suggest_categorical("width", [16, 32, 64]), 16],
    }


def split(data: Path) -> tuple[list[str], list[str]]:
    """Training files, and the quarter of them that is held back."""
    files = sorted(str(path) for path in data.glob("train-*.txt"))
    if len(files) < 4:
        sys.exit(f"{data} has {len(files)} training files; make_data.py of examples/adult writes 4")
    return files[: -len(files) // 4], files[-len(files) // 4 :]


def score(trial: optuna.Trial, data: Path, epochs: int) -> float:
    """The AUC of a trial on the held-back files, after its last epoch."""
    with psrt.program(seed=7):
        model = build(**suggested(trial))
    train, valid = split(data)

    def report(epoch: EpochLosses) -> None:
        trial.report(epoch.valid.auc.value(), epoch.epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    fitted = psrt.fit(
        model,
        train,
        valid,
        epochs=epochs,
        batch_size=128,
        callbacks=[report],
        say=lambda line: None,
    )
    return fitted.history[-1].valid.auc.value()


def command(best: Mapping[str, Any]) -> str:
    """The command that trains with the best values."""
    given = {
        "learning_rate": best["learning_rate"],
        "embedding": best["embedding"],
        "hidden": f"[{best['width']},16]",
    }
    words = " ".join(f"--set job.params.{name}={value}" for name, value in given.items())
    return f"psrt trainer --local {words} {EXAMPLES / 'adult' / 'adult.toml'}"


def search(arguments: Sequence[str] | None = None) -> optuna.Study:
    """Run the trials and print the best one."""
    parser = argparse.ArgumentParser(description="Search rates and widths of examples/adult.")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--data", type=Path, default=EXAMPLES / "adult" / "data")
    parser.add_argument("--storage", help="URL of a database, for several processes")
    given = parser.parse_args(arguments)
    study = optuna.create_study(
        study_name="adult",
        direction="maximize",
        storage=given.storage,
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=7),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
    )
    study.optimize(lambda trial: score(trial, given.data, given.epochs), n_trials=given.trials)
    pruned = [each for each in study.trials if each.state == optuna.trial.TrialState.PRUNED]
    print(f"best AUC {study.best_value:.4f} of {len(study.trials)} trials, {len(pruned)} cut short")
    print(command(study.best_params))
    return study


if __name__ == "__main__":
    search()
