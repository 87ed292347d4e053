"""The moment that a `state_dict()` belongs to, by which dense parts and tables fit together.

The state of a module with tables has no rows. It names the run of training and the cut of the
pservers that has the rows of the same moment; loading it anywhere else is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from psrt.core.errors import ConfigError, ErrorCode, JobError

State = dict[str, Any]
_VERSION = 1


def moment(run: str, cut: int, steps: int) -> State:
    """A moment: `steps` of `run` since its process began; `cut` has the tables, 0 = none has."""
    return {"psrt": _VERSION, "run": run, "cut": cut, "steps": steps}


def check_fits(state: Mapping[str, Any], now: State) -> None:
    """Raise `ConfigError` unless tables that are at `now` are those of a state."""
    is_same_cut = bool(state["cut"]) and (state["run"], state["cut"]) == (now["run"], now["cut"])
    begins = not state["run"] and not now["steps"] and not now["cut"]
    if is_same_cut or begins or dict(state) == now:
        return
    raise ConfigError(
        f"the state is {_text(state)}, and the tables are {_text(now)}: dense parameters and rows "
        "would be of different moments. The load was stopped.",
        hint=_hint(state),
    )


def _text(state: Mapping[str, Any]) -> str:
    if not state["run"]:
        return "of a model that was not trained"
    run = f"run {state['run'][:8]}"
    return f"of cut {state['cut']} of {run}" if state["cut"] else f"of {run}, between two cuts"


def _hint(state: Mapping[str, Any]) -> str:
    first = "Save by a Checkpointer, which makes a cut."
    if state["cut"]:
        first = f"Start the pservers with --resume {state['cut']}, and load before the first step."
    return (
        f"{first} To take dense parameters alone, drop its keys that end in `_extra_state`, and "
        "load with strict=False."
    )


def has_trained_before(rank: int) -> JobError:
    """The error of a process that goes on for a former one without its position."""
    return JobError(
        f"rank {rank} takes the place of a process that has trained in this job: its batches are "
        "in the tables, and would be trained again. Nothing was trained.",
        code=ErrorCode.TRAINER_LOST,
        hint="End all processes of the job. Then start pservers with --resume latest, and all "
        "ranks: Checkpointer.load goes on behind the batches of that cut. To train on any data, "
        "iterate over the loader itself, without pt.Resumable.",
    )


class HasMoment(Protocol):
    """A session, as far as modules use it."""

    def moment(self) -> State: ...

    def check_fits(self, state: Mapping[str, Any]) -> None: ...


class OfMoment(torch.nn.Module, ABC):
    """Base of modules whose parameters are elsewhere: their state names its moment."""

    def get_extra_state(self) -> State:
        """The moment of the session, and the names of the tables."""
        return {**self.its_session().moment(), "tables": self.its_names()}

    def set_extra_state(self, state: Any) -> None:
        """Raise `ConfigError` for the state of other tables, or of another moment."""
        if sorted(state["tables"]) != sorted(self.its_names()):
            raise ConfigError(
                f"the state is of {', '.join(state['tables'])}, and the module has "
                f"{', '.join(self.its_names())}. The load was stopped.",
                hint="Load the state of a model with the same tables.",
            )
        self.its_session().check_fits({k: v for k, v in state.items() if k != "tables"})

    @abstractmethod
    def its_session(self) -> HasMoment:
        """The session that its parameters belong to."""

    @abstractmethod
    def its_names(self) -> list[str]:
        """The names of its parameters or tables."""
