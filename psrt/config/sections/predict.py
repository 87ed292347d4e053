"""The section `[predict]`: settings of `psrt predict`."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting


@dataclass(frozen=True)
class PredictConfig:
    """A saved model and the files it is applied to."""

    out: str = setting("", "File to write to, at once when all is done; empty = standard output.")
    format: str = setting(
        "text",
        "What a line holds: text = values, tabs between vars; jsonl = an object by var.",
        choices=("text", "jsonl"),
    )
    batch_size: int = setting(1024, "Examples computed at a time.", minimum=1)
    slots: tuple[str, ...] = setting(
        (), "Slots of a line of the files, in order; empty = those of the training files."
    )
    job: str = setting(
        "", "Job file whose [data] tells the format of the files; empty = MultiSlot text."
    )
    fetch: tuple[str, ...] = setting(
        (), "Vars of the saved program to write; empty = the model's prediction."
    )
    logits: bool = setting(False, "Write a prediction that is a logit as it is, not σ of it.")
    cpu_threads: int = setting(1, "BLAS threads.", minimum=1)
    cache_dir: str = fields.cache_dir()
