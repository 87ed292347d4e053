"""The decisions of a pserver about a part that it keeps a copy of, or serves for its home; pure.

    EMPTY ──whole tick──▶ COPY ──deposed by all──▶ SERVES ──fenced──▶ EMPTY (in a newer epoch)

A tick is applied as a whole, when its last piece has come: a copy is always the part at one
instant. It serves once every trainer that may still use the present pserver has *deposed* it, that
is, has promised not to use it again in this epoch. So no trainer uses the old pserver when the new
one begins, though neither can tell whether the other runs. What the old one still applies is in
no later state: trainers send it again, unless a confirmed tick has it.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import NamedTuple


class Answer(enum.Enum):
    """The answer to a piece of a tick."""

    KEEP = "keep it until the last one"
    REPEATED = "it was answered before"
    APPLY = "it is the last one: apply the tick"
    BEGIN_ANEW = "something is missing: the next tick must have all rows"
    FENCED = "another pserver serves the part, or will"


class Piece(NamedTuple):
    """A piece of a tick, as its header describes it."""

    epoch: int
    incarnation: int
    tick: int
    number: int
    is_last: bool
    is_whole: bool


class CopyState:
    """The part, from the first piece on. `tick` is the newest that was applied, 0 = none.

    `deposed_by` are the trainers that have deposed the pserver of `epoch`.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.incarnation = self.tick = 0
        self.serves = False
        self.deposed_by: set[int] = set()
        self._under_way: tuple[int, int] | None = None  # tick, and its next piece

    @property
    def is_copy(self) -> bool:
        """True if there is a whole state, served or not."""
        return self.tick > 0

    def offered(self, piece: Piece) -> Answer:
        """Decide on a piece of a tick; the caller keeps what it is to `KEEP` until `APPLY`."""
        if self._is_foreign(piece):
            return Answer.FENCED
        if piece.epoch > self.epoch or not self.is_copy:
            self._follow(piece)
        if piece.tick <= self.tick:
            return Answer.REPEATED
        begun = self._under_way is not None and self._under_way[0] == piece.tick
        if piece.number == 0 and not begun and (piece.is_whole or self._continues(piece)):
            self._under_way = (piece.tick, 0)
        if self._under_way is None or self._under_way[0] != piece.tick:
            return Answer.BEGIN_ANEW
        expected = self._under_way[1]
        if piece.number != expected:
            return Answer.REPEATED if piece.number < expected else Answer.BEGIN_ANEW
        self._under_way = (piece.tick, expected + 1)
        return Answer.APPLY if piece.is_last else Answer.KEEP

    def applied(self, tick: int) -> None:
        """Record that all of a tick is in the copy."""
        self.tick, self._under_way = tick, None

    def deposed(self, trainer: int, epoch: int, using: Collection[int]) -> bool:
        """Record a deposal; True if the caller must begin to serve the part, and then `serve`.

        `using` are the trainers that may use the pserver of this epoch unless they have deposed it.
        """
        if epoch != self.epoch or self.serves or not self.is_copy:
            return False
        self.deposed_by.add(trainer)
        return self.deposed_by >= set(using)

    def serve(self) -> None:
        """Serve the part in the next epoch."""
        self.epoch, self.serves, self._under_way = self.epoch + 1, True, None
        self.deposed_by = set()

    def _continues(self, piece: Piece) -> bool:
        return self.is_copy and piece.tick == self.tick + 1

    def _is_foreign(self, piece: Piece) -> bool:
        """True for a sender that does not serve the part in the newest epoch."""
        if piece.epoch != self.epoch:
            return piece.epoch < self.epoch
        is_other = self.is_copy and piece.incarnation != self.incarnation
        return self.serves or bool(self.deposed_by) or is_other

    def _follow(self, piece: Piece) -> None:
        """Begin a copy of the part in the epoch of `piece`, without what there was before.

        Nor with pieces that another process has sent, which was killed before the last one.
        """
        if piece.incarnation != self.incarnation:
            self._under_way = None
        if piece.epoch > self.epoch:
            self.tick, self.deposed_by, self._under_way = 0, set(), None
        self.epoch, self.incarnation, self.serves = piece.epoch, piece.incarnation, False
