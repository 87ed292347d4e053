"""The format of the files that a model was trained on, or is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from psrt.config.load import load_job
from psrt.config.sections import DataConfig, PredictConfig
from psrt.data.formats import Format, format_named
from psrt.data.slots import Slot
from psrt.trainer.models.model_dir import Prediction


def options_in(data: DataConfig) -> dict[str, Any]:
    """The options of the format of a job's files, its columns among them."""
    return {**data.options, **({"columns": dict(data.columns)} if data.columns else {})}


def layout_of(settings: PredictConfig, prediction: Prediction) -> Prediction:
    """The format of the files: that of --job, of --input, or else that of the training files."""
    if settings.job:
        data = load_job(settings.job).config.data
        return replace(prediction, format=data.format, options=options_in(data))
    if settings.input:
        return replace(prediction, format=settings.input, options={})
    return prediction


def format_of_files(settings: PredictConfig, layout: Prediction, slots: Sequence[Slot]) -> Format:
    """Return the format of the files for these slots; settings of other slots are ignored.

    Rows of Criteo's table have no label if --slots leaves it out.
    """
    if layout.format == "criteo" and settings.slots and layout.label not in settings.slots:
        layout = replace(layout, options={**layout.options, "label": False})
    return format_of_slots(layout, slots, settings.job)


def format_of_slots(layout: Prediction, slots: Sequence[Slot], origin: str = "") -> Format:
    """Return a format for these slots alone, such as those without labels.

    Raises `ConfigError`, which begins with `origin`.
    """
    options, names = dict(layout.options), [slot.name for slot in slots]
    if columns := options.pop("columns", {}):
        options["columns"] = {slot: columns[slot] for slot in names if slot in columns}
    return format_named(layout.format, slots, options, origin)
