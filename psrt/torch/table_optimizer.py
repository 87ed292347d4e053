"""The optimizer of tables: a `torch.optim.Optimizer` whose updates happen on pservers.

The parameters of its groups are the leaves of the running step, and those of `DenseOnServer`, so
schedulers, `GradScaler` and `clip_grad_norm_` work as with any other. Only `step()` changes them:
all gradients since the last one, of several losses and of accumulated batches, are one update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from psrt.communicator.base import Gradient
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import Sync, moves_all_rows
from psrt.core.tensors import SelectedRows
from psrt.torch.compiling import untraced
from psrt.torch.dense_on_server import DenseOnServer, served_by
from psrt.torch.session import TableSession
from psrt.torch.table import Table

REDUCTIONS = ("mean", "sum")


class TableOptimizer(torch.optim.Optimizer):
    """Steps what `model`, or each of several modules, has on pservers, with a group for each table
    and `DenseOnServer`.

    A group has `lr`, `name` and `params`; a new `lr` counts from the next step on. `reduce` is what
    the gradients of T trainers become: their mean, as in DDP, or their sum; equal on all ranks. In
    Sync both are of the trainers with a share in the round, so one that goes on alone takes steps
    of its own size. In other modes, where trainers are not in step, mean scales by 1 / T.
    """

    _step_supports_amp_scaling = True
    """`GradScaler` hands its findings to `step` and always calls it: a step that it skips must
    still close the round of Sync."""

    def __init__(
        self, model: torch.nn.Module | Iterable[torch.nn.Module], reduce: str = "mean"
    ) -> None:
        whole = _as_module(model)
        self._tables, self._served = tables_of(whole), served_by(whole)
        if reduce not in REDUCTIONS:
            raise ConfigError(f"reduce is {reduce!r}.", hint=f"Use {' or '.join(REDUCTIONS)}.")
        self._stepped: list[Table | DenseOnServer] = [*self._tables, *self._served]
        self._session = session_of(self._stepped)
        self.steps = 0
        groups: list[dict[str, Any]] = [
            {"params": [], "name": table.name, "lr": table.first_rate} for table in self._tables
        ] + [
            {"params": list(each.served.values()), "name": each.name, "lr": each.first_rate}
            for each in self._served
        ]
        super().__init__(groups, {"lr": groups[0]["lr"]})
        for group, table in zip(self.param_groups, self._tables, strict=False):
            group["params"] = table.leaves
        self._scale, self._sums = _scale(self._session, reduce), reduce == "sum"

    def leaves(self) -> Iterator[torch.Tensor]:
        """The rows of the running step, for `clip_grad_norm_`."""
        for table in self._tables:
            yield from table.leaves

    @untraced
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Make one update of all tables; raises errors of this push and of earlier ones."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        scale = self._scale
        if (found := getattr(self, "found_inf", None)) is not None:  # set by GradScaler
            if _anywhere(found):
                self._skip()
                return loss
            factor = getattr(self, "grad_scale", None)
            scale = scale if factor is None else scale / float(factor)
        self._push(scale)
        return loss

    @untraced
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the leaves of this step; gradients that were never stepped are a skipped step."""
        if any(each.has_gradients for each in self._stepped):
            self._skip()
        self._clear()

    def state_dict(self) -> dict[str, Any]:
        """The numbers of each group and the count of steps; rows are where the tables are."""
        groups = [{k: v for k, v in group.items() if k != "params"} for group in self.param_groups]
        return {"param_groups": groups, "steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the numbers of groups by name; raises `ConfigError` if the tables differ."""
        groups = {group["name"]: group for group in state_dict["param_groups"]}
        own = {group["name"]: group for group in self.param_groups}
        if groups.keys() != own.keys():
            raise ConfigError(
                f"the state is of tables {', '.join(sorted(groups))}, and this optimizer has "
                f"{', '.join(sorted(own))}; nothing was loaded.",
                hint="Load the state of an optimizer of the same model.",
            )
        for name, group in own.items():
            group.update({k: v for k, v in groups[name].items() if k != "params"})
        self.steps = int(state_dict["steps"])

    def _push(self, scale: float) -> None:
        started = [(table.name, table.start_gradient()) for table in self._tables]
        dense = [pair for each in self._served for pair in each.start_gradients().items()]
        found = {name: gradient.end(scale) for name, gradient in started}
        gradients: dict[str, Gradient] = {k: v for k, v in found.items() if v is not None}
        gradients |= {name: np.atleast_1d(copy.numbers(scale)) for name, copy in dense}
        rates = {group["name"]: float(group["lr"]) for group in self.param_groups}
        for each in self._served:
            rates.update(dict.fromkeys(each.served, rates[each.name]))
        try:
            self._session.push(gradients or self._nothing(), rates, self._sums)
        finally:
            self._clear()
        self.steps += 1

    def _nothing(self) -> dict[str, Gradient]:
        """Gradients of no rows, for a batch without lookups: it has its share in the mean."""
        lazy = [each for each in self._tables if not moves_all_rows(each.declared.optimizer)]
        none = np.empty(0, np.int64)
        return {
            each.name: SelectedRows(none, np.empty((0, each.width), np.float32), unique=True)
            for each in lazy[:1]
        }

    def _skip(self) -> None:
        self._clear()
        self._session.skip()

    def _clear(self) -> None:
        for each in self._stepped:
            each.clear()


def _as_module(given: torch.nn.Module | Iterable[torch.nn.Module]) -> torch.nn.Module:
    """A model, or several modules as one; raises `ProgramError` for what is none."""
    if isinstance(given, torch.nn.Module):
        return given
    several = list(given)
    if wrong := [each for each in several if not isinstance(each, torch.nn.Module)]:
        raise ProgramError(
            f"TableOptimizer was given a {type(wrong[0]).__name__}, which is no module.",
            hint="Tables are no parameters: give it the model, not model.parameters().",
        )
    return torch.nn.ModuleList(several)


def session_of(stepped: Sequence[Table | DenseOnServer]) -> TableSession:
    """The one session of tables and dense parameters; raises `ProgramError` without exactly one."""
    if not stepped:
        raise ProgramError(
            "the model has no tables of psrt.torch.",
            hint="Give a model with an Embedding, EmbeddingBag, collection or DenseOnServer.",
        )
    session = stepped[0].session
    assert isinstance(session, TableSession)
    if others := [each.name for each in stepped if each.session is not session]:
        raise ProgramError(
            f"{', '.join(others)} and {stepped[0].name} are of different sessions.",
            hint="Give each session a TableOptimizer of its own.",
        )
    return session


def tables_of(model: torch.nn.Module) -> list[Table]:
    """The tables of all modules of `model`, each once."""
    found: dict[int, Table] = {}
    for module in model.modules():
        several = getattr(module, "tables", ())
        own = [getattr(module, "table", None), *(several if isinstance(several, tuple) else ())]
        found.update({id(each): each for each in own if isinstance(each, Table)})
    return list(found.values())


def _scale(session: TableSession, reduce: str) -> float:
    """The factor of gradients; pservers reduce those of a round of Sync."""
    is_reduced = isinstance(session.backend.mode, Sync) or reduce == "sum"
    return 1.0 if is_reduced else 1.0 / session.backend.trainers


def _anywhere(found_inf: torch.Tensor | int) -> bool:
    """True if any rank has found an infinite gradient: then all of them skip the step.

    `found_inf` is the number 0 of a batch without gradients.
    Raises `ProgramError` if ranks have found different things: the scalers of some of them would
    go on with another scale, and DDP would average gradients of different scales.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return bool(found_inf)
    if not isinstance(found_inf, torch.Tensor):
        at = "cuda" if dist.get_backend() == "nccl" else "cpu"
        found_inf = torch.tensor(found_inf, device=at)
    found = found_inf.reshape(1).bool().float()
    both = torch.cat([found, -found])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    most, least = both[0].item(), -both[1].item()
    if most != least:
        raise ProgramError(
            f"some ranks have found infinite gradients of tables, and rank {dist.get_rank()} has "
            f"{'' if found.item() else 'not '}found any: their loss scales would differ from here "
            "on. No table was changed.",
            hint="Use torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler, and call "
            "scaler.unscale_(tables) before scaler.step(tables).",
        )
    return bool(most)
