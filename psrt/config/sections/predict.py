"""The section `[predict]`: settings of `psrt predict`."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting


@dataclass(frozen=True)
class PredictConfig:
    """A saved model and the files it is applied to."""

    out: str = setting("", "File for the predictions, complete or absent; empty = standard output.")
    format: str = setting(
        "text",
        "Format of a line: text = values, tabs between vars; jsonl = an object by var.",
        choices=("text", "jsonl"),
    )
    batch_size: int = setting(1024, "Examples computed at a time.", minimum=1)
    slots: tuple[str, ...] = setting(
        (), "Slots of a line of the files, in order; empty = those of the training files."
    )
    job: str = setting(
        "",
        "Job file whose [data] describes the format of the files; empty = that of the training "
        "files.",
    )
    input: str = setting(
        "",
        "Format of the files without --job; empty = that of the training files.",
        choices=("", "multislot", "libsvm", "criteo"),
    )
    fetch: tuple[str, ...] = setting(
        (), "Vars of the saved program to write; empty = the model's prediction."
    )
    logits: bool = setting(
        False, "Write logits instead of their sigmoid, for a prediction that is a logit."
    )
    measure: bool = setting(
        False,
        "Also print the AUC of the predictions, by group and weighted where the model has a group "
        "and weights, against the labels of the files.",
    )
    cpu_threads: int = setting(1, "BLAS threads.", minimum=1)
    cache_dir: str = fields.cache_dir()
