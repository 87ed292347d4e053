"""`DenseOnServer`: a module whose parameters are on pservers, as those of DDP are on all ranks.

    model.top = pt.DenseOnServer(model.top, pt.optim.Adam(lr=1e-3))
    tables = pt.TableOptimizer(model)          steps tables and this module by one push

Trainers may come and go, run at different speeds, or be far away: the mode of the session decides.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import MODES, CommunicationMode
from psrt.torch import optim
from psrt.torch.compiling import untraced
from psrt.torch.cuts import HasMoment, OfMoment
from psrt.torch.declared import dense_of
from psrt.torch.optim import ServerOptimizer, checked_rule
from psrt.torch.session import TableSession, current
from psrt.torch.staging import HostCopy, start_to_host


class DenseOnServer(OfMoment):
    """`module`, with its trained parameters on pservers under `name`; made in a session.

    They begin with the values of trainer 0. `optimizer` is one of `psrt.torch.optim`, by default
    SGD with lr 0.01. Buffers, such as statistics of batch norm, stay with each trainer. `mode`, if
    given, must be that of the session: raises `ConfigError` for another one. A step takes the
    gradients, and sends them without a copy: do not write to one that you keep. A deep copy is one
    of `module` alone, which no pserver updates.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: ServerOptimizer | None = None,
        mode: str | CommunicationMode | None = None,
        *,
        name: str = "dense",
    ) -> None:
        super().__init__()
        session, rule = current(), checked_rule(name, optimizer or optim.SGD(lr=0.01))
        _check_mode(session, mode)
        self.module, self.name, self.first_rate = module, name, float(rule.lr)
        self.session = session
        trained = ((n, p) for n, p in module.named_parameters() if p.requires_grad)
        self.served = {f"{name}.{each}": parameter for each, parameter in trained}
        if not self.served:
            raise ProgramError(
                f"{name} has no parameters to train.",
                hint="Use the module as it is, without DenseOnServer.",
            )
        for each, parameter in self.served.items():
            _check_number(each, parameter)
            session.dense(dense_of(each, tuple(parameter.shape), rule), parameter)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Call the module on the newest parameters that have arrived."""
        self._reach()
        return self.module(*inputs, **named)

    @untraced
    def _reach(self) -> None:
        """Open the session: the parameters are those of pservers from then on."""
        if not self.session.has_ended:
            self.session.open()

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.nn.Module:
        """A copy of the module alone, as it is now: pservers have one of each parameter."""
        return copy.deepcopy(self.module, memo)

    def its_session(self) -> HasMoment:
        return self.session

    def its_names(self) -> list[str]:
        return list(self.served)

    @property
    def has_gradients(self) -> bool:
        return any(parameter.grad is not None for parameter in self.served.values())

    def start_gradients(self) -> dict[str, HostCopy]:
        """Start to copy the gradients of this step by name to this host; those of a CPU are here
        already. Nobody writes to them after the step: it ends with `clear`."""
        served = self.served.items()
        return {name: start_to_host(each.grad) for name, each in served if each.grad is not None}

    def clear(self) -> None:
        """End the step: drop its gradients."""
        for parameter in self.served.values():
            parameter.grad = None


def _check_number(name: str, parameter: torch.Tensor) -> None:
    if not parameter.is_floating_point():
        raise ProgramError(
            f"{name} is of {parameter.dtype}, and pservers have float32; nothing was declared.",
            hint="Train it in this process, outside of DenseOnServer.",
        )


def _check_mode(session: TableSession, mode: str | CommunicationMode | None) -> None:
    given = MODES[mode] if isinstance(mode, str) and mode in MODES else mode
    used = session.backend.mode
    if given is not None and given not in (used, type(used)):
        raise ConfigError(
            f"DenseOnServer has mode {mode!r}, and its session {used}: a job has one mode.",
            hint="Give the mode to pt.connect().",
        )


def served_by(model: torch.nn.Module) -> list[DenseOnServer]:
    """The `DenseOnServer` modules in `model`."""
    return [each for each in model.modules() if isinstance(each, DenseOnServer)]
