"""The public Criteo table as a delimited format, with the columns of `psrt.data.convert.criteo`.

Slots are identified by kind and name: a float × 1 is the label, a float × 13 the integers as
sign(x) · ln(1 + |x|), ids C1 … C26 the categories, ids I1 … I13 the buckets of the integers. Ids
equal those that `psrt data criteo` writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ConfigError
from psrt.data.formats.delimited import DelimitedFormat
from psrt.data.slots import Slot
from psrt.kernels.text import CATEGORIES, INTEGERS


def criteo_format(slots: Sequence[Slot], label: bool = True) -> DelimitedFormat:
    """Return the format `criteo`, the slots of `psrt.data.convert.criteo` from the public table.

    `label`: rows begin with a label; those of the contest's test file do not. Raises `ConfigError`.
    """
    if not isinstance(label, bool):
        raise ConfigError(f"label is {label!r}, expected true or false.")
    names = [*["label"][:label], *(f"I{i}" for i in range(1, INTEGERS + 1))]
    names += [f"C{i}" for i in range(1, CATEGORIES + 1)]
    columns = {slot.name: _criteo_column(slot) for slot in slots}
    return DelimitedFormat(slots, columns, "\t", False, "", names)


def _criteo_column(slot: Slot) -> dict[str, Any]:
    match = re.fullmatch(r"([CI])(\d+)", slot.name)
    if match and slot.dtype == "uint64":
        number = int(match[2])
        if match[1] == "C" and 1 <= number <= CATEGORIES:
            return {"column": slot.name, "kind": "text", "salt": number}
        if match[1] == "I" and 1 <= number <= INTEGERS:
            return {"column": slot.name, "kind": "bucket", "salt": CATEGORIES + number}
    if slot.dtype == "float" and slot.size == INTEGERS:
        integers = [f"I{i}" for i in range(1, INTEGERS + 1)]
        return {"columns": integers, "scale": "log", "missing": 0}
    if slot.dtype == "float" and slot.size == 1:
        return {"column": "label", "values": {"0": 0, "1": 1}}
    raise ConfigError(
        f"the Criteo table cannot feed slot {slot.name!r} ({slot.dtype} × {slot.size or 'any'}).",
        hint="It has a float × 1 (the label), a float × 13, and ids C1 … C26 and I1 … I13. "
        "Format csv takes any other arrangement.",
    )
