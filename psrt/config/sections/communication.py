"""The `[communication]` section: `mode`, `wire`, and the settings of that mode only.

The modes are the dataclasses of `psrt.core.specs.modes`, which do not depend on configuration; this
module adds their help lines and limits. `wire` and the table `wire_tables` apply to every mode:
`psrt.core.precision`.
"""

from __future__ import annotations

import dataclasses
import typing

from psrt.config.settings import Setting
from psrt.core.precision import PRECISIONS
from psrt.core.specs import MODES

SECTION = "communication"
MODE = Setting(SECTION, "mode", str, "sync", "Communication mode.", choices=tuple(MODES))
WIRE = Setting(
    SECTION,
    "wire",
    str,
    "float32",
    "Precision in which gradients and parameters travel.",
    choices=PRECISIONS,
)
WIRE_TABLES = "wire_tables"
IN_EVERY_MODE = (MODE, WIRE)

_ON_LOSS = {"on_trainer_loss": "Reaction to a trainer that leaves without completing."}
_HELP: dict[str, dict[str, str]] = {
    "sync": _ON_LOSS,
    "async": {
        "max_merge_var_num": "Most gradients of one parameter that are merged into one push.",
        "send_queue_size": "Gradients of one parameter that may wait; a full queue blocks steps.",
        "send_wait_times": "Waits of 10 ms for more gradients before a push goes out.",
        "merge": "Merging of gradients that travel in one push.",
        "min_send_grad_num_before_recv": "Pushes between two pulls of dense parameters.",
        "independent_recv_thread": "Pull large dense parameters on a separate thread.",
        "thread_pool_size": "Pushes in flight.",
        "dc_asgd": "Strength of delay compensation of dense gradients; 0 = none.",
        **_ON_LOSS,
    },
    "ssp": {"max_steps_ahead": "Steps a trainer may be ahead of the slowest; 0 = none."} | _ON_LOSS,
    "half_async": _ON_LOSS,
    "collective": {"bucket_kib": "Most dense gradients that travel in one call, in KiB."},
    "geo": {"update_frequency": "Local steps between two exchanges of changes."} | _ON_LOSS,
}
_CHOICES = {"on_trainer_loss": ("abort", "wait", "shrink"), "merge": ("sum", "average")}
_LEAST: dict[str, float] = {"send_wait_times": 0, "max_steps_ahead": 0, "dc_asgd": 0}
"""Every other number is at least 1."""


def settings_of_mode(mode: str) -> list[Setting]:
    """Return the settings of one mode, without `mode` itself."""
    cls = MODES[mode]
    types = typing.get_type_hints(cls)
    return [
        Setting(
            SECTION,
            field.name,
            types[field.name],
            field.default,
            _HELP[mode][field.name],
            minimum=_LEAST.get(field.name, 1) if types[field.name] in (int, float) else None,
            choices=_CHOICES.get(field.name, ()),
        )
        for field in dataclasses.fields(cls)
    ]


def modes_with(name: str) -> list[str]:
    """Return the modes that have a setting of this name, for the hint of an unknown key."""
    return [mode for mode, cls in MODES.items() if name in cls.__dataclass_fields__]
