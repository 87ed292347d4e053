"""Where Fluid keeps the generators of MultiSlot text; they are those of
`psrt.data.python.generator`."""

from __future__ import annotations

from psrt.data.python import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]
