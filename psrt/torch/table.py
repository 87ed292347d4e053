"""One table as seen by a torch loop: the lookups of the running step, whose rows are leaves.

A leaf has the distinct rows of a lookup, is no `nn.Parameter`, and belongs to a batch: the same
tensor of ids looked up twice in a step gets the same leaf, so gradients add up, and activation
checkpoints see the same values. A leaf whose backward comes after `zero_grad()` or `step()` belongs
to the step that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch

from psrt.core.errors import ProgramError
from psrt.core.specs import rate_at
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64, Array
from psrt.kernels.tables import unique
from psrt.torch.compiling import untraced
from psrt.torch.cuts import HasMoment
from psrt.torch.declared import DeclaredParameter
from psrt.torch.staging import HostCopy, on_device, start_to_host

_NO_IDS, _NO_ROWS = torch.empty(0, dtype=torch.int64), torch.empty(0)


class RowSource(HasMoment, Protocol):
    """The session of a table, as far as a table uses it."""

    max_lookups: int

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]: ...
    def rows(self, table: str) -> Iterator[tuple[I64, F32]]: ...


class Lookup(NamedTuple):
    """`rows` (n, width) of the distinct `ids` (n,); `positions` int32 has those of the ids asked.

    `asked` is the tensor of ids, and `at` has the positions in memory of this host; `padding` is
    the position of the padding id in `rows`, or None.
    """

    asked: torch.Tensor
    ids: I64
    at: Array
    positions: torch.Tensor
    rows: torch.Tensor
    padding: int | None


class StartedGradient(NamedTuple):
    """The ids (n,) of each leaf, and copies (n, width) of its gradients, which are on their way."""

    ids: list[I64]
    copies: list[HostCopy]

    def end(self, scale: float = 1.0) -> SelectedRows | None:
        """The gradients of all leaves, times `scale`; None without any."""
        if not self.ids:
            return None
        values = [copy.numbers(scale) for copy in self.copies]
        if len(values) == 1:
            return SelectedRows(self.ids[0], values[0], unique=True)
        return SelectedRows(np.concatenate(self.ids), np.concatenate(values))


class Table:
    """`leaves` is the live list of rows of the running step, the parameters of an optimizer."""

    def __init__(self, session: RowSource, declared: DeclaredParameter) -> None:
        self.session, self.declared = session, declared
        self.name, self.width = declared.name, declared.shape[1]
        self.leaves: list[torch.Tensor] = []
        self._lookups: list[Lookup] = []

    def look_up(
        self, ids: torch.Tensor, trains: bool, device: torch.device | None = None
    ) -> Lookup:
        """The rows of `ids`, of any shape and integer type, on `device`, or else on theirs.

        With `trains`, and under grad, they are a leaf of the running step. Otherwise nothing stays.
        """
        return look_up_all([(self, ids)], trains, device)[0]

    def known(self, ids: torch.Tensor, device: torch.device) -> Lookup | None:
        """The lookup of this very tensor of ids in the running step."""
        return next((each for each in self._lookups if _is_same(each, ids, device)), None)

    def keep(self, lookup: Lookup) -> None:
        """Make the rows of a lookup a leaf of the running step; raises `ProgramError` if steps are
        missing."""
        self._check_steps()
        self._add(lookup, lookup.rows.requires_grad_(True))

    def start_gradient(self) -> StartedGradient:
        """Start to copy the gradients of all leaves of this step to this host."""
        found = [each for each in self._lookups if each.rows.grad is not None]
        copies = [start_to_host(_dense(each.rows.grad)) for each in found]
        return StartedGradient([each.ids for each in found], copies)

    def gradient(self, scale: float = 1.0) -> SelectedRows | None:
        """The gradients of all leaves of this step, times `scale`; None without any."""
        return self.start_gradient().end(scale)

    @property
    def first_rate(self) -> float:
        """The learning rate that the table was declared with."""
        return rate_at(self.declared.learning_rate, 0)

    @property
    def has_gradients(self) -> bool:
        return any(leaf.grad is not None for leaf in self.leaves)

    def clear(self) -> None:
        """End the step: later lookups get leaves of their own, and these come back with a gradient
        of a later backward."""
        for lookup in self._lookups:
            lookup.rows.grad = None
            lookup.rows.register_post_accumulate_grad_hook(self._return_of(lookup))
        self.leaves.clear()
        self._lookups.clear()

    def found(
        self, ids: torch.Tensor, distinct: I64, positions: Array, rows: F32, device: torch.device
    ) -> Lookup:
        """The lookup of `ids`, whose `distinct` ids have `rows` (n, width)."""
        if not rows.flags.writeable:
            rows = rows.copy()
        where, values = (on_device(torch.from_numpy(each), device) for each in (positions, rows))
        return Lookup(ids, distinct, positions, where, values, self._padding_in(distinct))

    def _add(self, lookup: Lookup, leaf: torch.Tensor) -> None:
        self._lookups.append(lookup)
        self.leaves.append(leaf)

    def _return_of(self, lookup: Lookup) -> Callable[[torch.Tensor], None]:
        """Make the hook by which a leaf of an ended step, with a gradient, joins the running one.

        It holds no leaf, which the graph of autograd alone keeps. Rows that were read before a step
        serve no further lookup, so it has no tensor of ids.
        """
        returned = lookup._replace(asked=_NO_IDS, rows=_NO_ROWS)

        def join(leaf: torch.Tensor) -> None:
            if not any(each is leaf for each in self.leaves):
                self._add(returned._replace(rows=leaf), leaf)

        return join

    def __deepcopy__(self, memo: object) -> Table:
        """This table: copies of a model share it."""
        return self

    def _padding_in(self, distinct: I64) -> int | None:
        if self.declared.padding_id is None:
            return None
        found = np.flatnonzero(distinct == self.declared.padding_id)
        return int(found[0]) if len(found) else None

    def _check_steps(self) -> None:
        if len(self.leaves) >= self.session.max_lookups:
            raise ProgramError(
                f"table {self.name} was looked up {len(self.leaves)} times under grad without "
                "step() of a TableOptimizer: none of these gradients has reached the table.",
                hint="Call tables.step() after loss.backward(), evaluate under torch.no_grad(), or "
                "raise max_lookups of the session to accumulate over more batches.",
            )


@untraced
def look_up_all(
    asked: Sequence[tuple[Table, torch.Tensor]], trains: bool, device: torch.device | None = None
) -> list[Lookup]:
    """Look up ids in several tables, each named once, by one pull; see `Table.look_up`."""
    is_step = trains and torch.is_grad_enabled()
    known = [table.known(ids, device or ids.device) if is_step else None for table, ids in asked]
    new = [pair for pair, found in zip(asked, known, strict=True) if found is None]
    lookups = iter(_read(new, device) if new else ())
    result = []
    for (table, _), found in zip(asked, known, strict=True):
        if found is None:
            found = next(lookups)
            if is_step:
                table.keep(found)
        result.append(found)
    return result


def _read(asked: Sequence[tuple[Table, torch.Tensor]], device: torch.device | None) -> list[Lookup]:
    parts = [unique(numbers_of_ids(ids)) for _, ids in asked]
    wanted = {table.name: ids for (table, _), (ids, _) in zip(asked, parts, strict=True)}
    rows = asked[0][0].session.pull(wanted)
    return [
        table.found(ids, distinct, positions, rows[table.name], device or ids.device)
        for (table, ids), (distinct, positions) in zip(asked, parts, strict=True)
    ]


def _is_same(lookup: Lookup, ids: torch.Tensor, device: torch.device) -> bool:
    """True if `lookup` is that of `ids`, unless the tensor was filled with others since then."""
    if lookup.asked is not ids or lookup.rows.device != device:
        return False
    return np.array_equal(lookup.ids[lookup.at], numbers_of_ids(ids))


def numbers_of_ids(ids: torch.Tensor) -> I64:
    """The ids (n,) int64 of a tensor of any shape; raises `ProgramError` unless it is integer."""
    if ids.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8):
        raise ProgramError(
            f"ids are a tensor of {ids.dtype}; nothing was looked up.",
            hint="Ids are whole numbers: int64, or a smaller integer type.",
        )
    flat: I64 = ids.detach().reshape(-1).to("cpu", torch.int64).contiguous().numpy()
    return flat


def _dense(gradient: torch.Tensor | None) -> torch.Tensor:
    assert gradient is not None
    return gradient.to_dense() if gradient.is_sparse else gradient
