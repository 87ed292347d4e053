"""The layout of a row of a sparse table, in words of 4 bytes.

    word   0        1        2   3   4 …                    weights_at   state_at
         | version | updates |  id  | seen, show, click, … | weights    | optimizer state | (pad) |

The version and the count of updates are int32 (see `optimizers.row_headers`), the id is an int64,
so rows are a whole number of 8 bytes long. A table may ask for the words behind the id. Weights are
float32, or float16 or bfloat16 two to a word; state is always float32. A row contains its id, so a
lookup reads its cell and the row and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from psrt.core.errors import ConfigError
from psrt.core.specs import STORAGES, SparseTableSpec
from psrt.kernels.optimizers import HEADER_WORDS

ID_WORD = HEADER_WORDS  # two words, from an even one on
FIXED_WORDS = ID_WORD + 2
OPTIONAL_WORDS = ("seen", "show", "click")

FLOAT32, FLOAT16, BFLOAT16 = STORAGES


@dataclass(frozen=True)
class RowLayout:
    """Places are words from the start of a row; those of absent words are −1.

    `seen_at`: int32, hours since 1970 of the last push. `show_at`, `click_at`: float32, how often
    the id was shown and clicked. `words` is the length of a row.
    """

    width: int
    storage: str
    seen_at: int
    show_at: int
    click_at: int
    weights_at: int
    state_at: int
    words: int

    @property
    def header_words(self) -> int:
        """Words before the weights."""
        return self.weights_at

    @property
    def is_half(self) -> bool:
        """True if weights take 2 bytes."""
        return self.storage != FLOAT32

    @property
    def row_bytes(self) -> int:
        return self.words * 4

    def as_float32(self) -> RowLayout:
        """This layout with weights in float32, as updates of a half row compute."""
        state_at = self.weights_at + self.width
        words = _even(state_at + self.words - self.state_at)
        return replace(self, storage=FLOAT32, state_at=state_at, words=words)


def row_layout(
    width: int, state_words: int, storage: str = FLOAT32, optional: Collection[str] = ()
) -> RowLayout:
    """The layout of rows of `width` weights and `state_words` float32 of optimizer state.

    `optional` are some of OPTIONAL_WORDS. Raises `ConfigError` for an unknown storage.
    """
    if storage not in STORAGES:
        raise ConfigError(f"rows cannot be stored as {storage!r}; use one of {STORAGES}.")
    places = dict.fromkeys(OPTIONAL_WORDS, -1)
    present = [name for name in OPTIONAL_WORDS if name in optional]
    places.update({name: FIXED_WORDS + number for number, name in enumerate(present)})
    weights_at = FIXED_WORDS + len(present)
    state_at = weights_at + (width if storage == FLOAT32 else (width + 1) // 2)
    return RowLayout(
        width,
        storage,
        *(places["seen"], places["show"], places["click"]),
        *(weights_at, state_at, _even(state_at + state_words)),
    )


def table_layout(spec: SparseTableSpec, state_words: int) -> RowLayout:
    """The layout of the rows of a table, with the optional words that its spec asks for."""
    kept = {"seen": spec.keeps_seen, "show": spec.keeps_counts, "click": spec.keeps_counts}
    optional = [word for word, is_kept in kept.items() if is_kept]
    return row_layout(spec.width, state_words, spec.storage, optional)


def _even(words: int) -> int:
    return words + (words & 1)
