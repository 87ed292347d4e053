"""A small job with one mistake in it, and the message that psrt answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = """import psrt
from psrt import layers


def build(learning_rate: float = 0.05, width: int = 8) -> psrt.Model:
    x = layers.data("x", shape=(3,), dtype="float32")
    item = layers.data("item", shape=(1,), dtype="int64")
    click = layers.data("click", shape=(1,), dtype="float32")
    row = layers.slot_embeddings([item], (50, 4))
    hidden = layers.fc(layers.concat([x, row], axis=1), width, act="relu")
    logit = layers.fc(hidden, 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    return psrt.Model(
        loss=loss,
        prediction=layers.sigmoid(logit),
        label=click,
        optimizer=psrt.optimizer.Adagrad(learning_rate),
    )
"""
JOB = """[job]
name = "small"
program = "program.py"

[data]
train = ["train.txt"]
test = ["test.txt"]
batch_size = 4
"""
ROWS = "".join(f"3 0.1 0.2 {i / 10} 1 {i} 1 {i % 2}\n" for i in range(16))
FILES = {"program.py": PROGRAM, "job.toml": JOB, "train.txt": ROWS, "test.txt": ROWS}


@dataclass(frozen=True)
class Mistake:
    """`edits` replace texts in the files of a job; `files` are others; {job}, {folder} and {model}
    in `command` are paths. The message must hold `what`, `where` and `to_do`."""

    what: str
    where: str
    to_do: str
    edits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    command: str = "trainer --local {job}"


def write(folder: Path, mistake: Mistake) -> None:
    """Write the files of a job with the mistake; each edit must meet a text once."""
    texts = FILES | dict(mistake.files)
    for name, (old, new) in mistake.edits.items():
        assert texts[name].count(old) == 1, f"{old!r} is not once in {name}"
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        (folder / name).write_text(text)


def arguments(mistake: Mistake, folder: Path, model: Path) -> list[str]:
    paths = {"job": folder / "job.toml", "folder": folder, "model": model}
    return [word.format(**paths) for word in mistake.command.split()]
