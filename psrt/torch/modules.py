"""`Embedding` and `EmbeddingBag`: the modules of these names in `torch.nn`, over a table.

They take no number of embeddings: any int64 is an id, and a row exists once it was updated. They
have no parameters, so DDP, FSDP and optimizers of dense parameters see no table. `model.to(device)`
decides where rows are looked up to, and `model.bfloat16()` and the like what they are cast to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch

from psrt.core.errors import ProgramError
from psrt.core.specs import DEFAULT_OPTIONS, Initializer, Normal, TableOptions
from psrt.torch import optim
from psrt.torch.cuts import HasMoment, OfMoment
from psrt.torch.declared import table_of
from psrt.torch.optim import ServerOptimizer, checked_rule
from psrt.torch.pooling import POOLINGS, gathered_rows, pooled_rows
from psrt.torch.session import current
from psrt.torch.table import Table

AS_TORCH = Normal(0.0, 1.0)
"""First values of `torch.nn.Embedding`."""


def declared_table(
    name: str,
    dim: int,
    padding_idx: int | None = None,
    optimizer: ServerOptimizer | None = None,
    init: Initializer = AS_TORCH,
    options: TableOptions = DEFAULT_OPTIONS,
) -> Table:
    """The table `name` of the current session, made if it does not exist."""
    session, rule = current(), optimizer or optim.SGD(lr=0.01)
    if not (isinstance(name, str) and name and isinstance(dim, int) and dim > 0):
        raise ProgramError(
            f"a table was declared with dim {dim!r} and name {name!r}; nothing was made.",
            hint="The width of rows comes first, then a text of your own: pt.EmbeddingBag(16, "
            '"items"). A table has no number of rows: any int64 is an id.',
        )
    checked_rule(name, rule)
    return session.table(table_of(name, dim, rule, init, session.seed, padding_idx, options))


def check_pooling(table: str, pooling: object) -> None:
    """Raise `ProgramError` unless `pooling` is one of torch's."""
    if pooling not in POOLINGS:
        raise ProgramError(
            f"table {table} was declared with pooling {pooling!r}; nothing was made.",
            hint=f"Use one of {', '.join(POOLINGS)}.",
        )


class TableModule(OfMoment):
    """A module that looks up rows to `device`, and returns them in `dtype`: those that `to()`,
    `cuda()`, `bfloat16()` and the like have given it.

    It has `table`, or several `tables`, whose rows are float32.
    """

    device, dtype = torch.device("cpu"), torch.float32
    table: Table

    def its_tables(self) -> tuple[Table, ...]:
        return (self.table,)

    def its_session(self) -> HasMoment:
        return self.its_tables()[0].session

    def its_names(self) -> list[str]:
        return [each.name for each in self.its_tables()]

    def extra_repr(self) -> str:
        """The widths of the tables by name, for a print of the model."""
        return ", ".join(f"{each.name}: {each.width}" for each in self.its_tables())

    def rows_at(self, ids: torch.Tensor) -> torch.device:
        """The device of rows of `ids`: that of ids on a GPU, else that of the module.

        Ids are read by this host, so those on a GPU make the training thread wait for it. Raises
        `ProgramError` for ids that are no tensor.
        """
        if not isinstance(ids, torch.Tensor):
            raise ProgramError(
                f"ids of {', '.join(self.its_names())} are a {type(ids).__name__}; nothing was "
                "looked up.",
                hint="Give a tensor of whole numbers: torch.as_tensor(ids).",
            )
        return ids.device if ids.is_cuda else self.device

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        there = fn(torch.empty(0, dtype=self.dtype, device=self.device))
        self.device, self.dtype = there.device, there.dtype
        super()._apply(fn, recurse)
        return self


class Embedding(TableModule):
    """Rows by id: int (…) → (…, dim), float32 unless the model was cast.

    The table is called `name`; modules of one name share it. A row of `padding_idx` is zeros and
    stays so. `optimizer` is one of `psrt.torch.optim`, by default SGD with lr 0.01.
    """

    def __init__(
        self,
        dim: int,
        name: str,
        padding_idx: int | None = None,
        *,
        optimizer: ServerOptimizer | None = None,
        init: Initializer = AS_TORCH,
        options: TableOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__()
        self.table = declared_table(name, dim, padding_idx, optimizer, init, options)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Look up `ids`; raises `ProgramError` for ids that are no integers."""
        found = self.table.look_up(ids, self.training, self.rows_at(ids))
        rows = gathered_rows(found.rows, found.positions)
        return rows.view(*ids.shape, self.table.width).to(self.dtype)


class EmbeddingBag(TableModule):
    """Sums, means or maxima over bags of rows, with the arguments of `torch.nn.EmbeddingBag`.

    Ids (batch, n), or (n,) with `offsets`, → (batch, dim), float32 unless the model was cast.
    """

    def __init__(
        self,
        dim: int,
        name: str,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        *,
        optimizer: ServerOptimizer | None = None,
        init: Initializer = AS_TORCH,
        options: TableOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__()
        check_pooling(name, mode)
        self.mode, self.include_last_offset = mode, include_last_offset
        self.table = declared_table(name, dim, padding_idx, optimizer, init, options)

    def forward(
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Pool the rows of each bag; raises what `torch.nn.functional.embedding_bag` raises."""
        found = self.table.look_up(input, self.training, self.rows_at(input))
        positions = found.positions.view(input.shape)
        how = self.mode, per_sample_weights, self.include_last_offset, found.padding
        return pooled_rows(found.rows, positions, offsets, *how).to(self.dtype)
