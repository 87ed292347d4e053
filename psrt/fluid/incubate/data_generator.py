"""Fluid's path of the generators of MultiSlot text, those of `psrt.data.python`."""

from __future__ import annotations

from psrt.data.python import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]
