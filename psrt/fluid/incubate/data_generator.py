"""Where Fluid keeps the generators of MultiSlot text; they are those of `psrt.data.generator`."""

from __future__ import annotations

from psrt.data.generator import (
    DataGenerator,
    MultiSlotDataGenerator,
    MultiSlotStringDataGenerator,
)

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]
