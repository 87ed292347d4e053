"""Several lists of ids by feature, each with a bag of ids for each example.

`features_of` takes what users have: a `Jagged`, anything with the methods of TorchRec's
`KeyedJaggedTensor`, or a mapping of features to tensors or to (values, offsets).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from psrt.core.errors import ProgramError


@dataclass(frozen=True)
class Feature:
    """Ids (n,) of one feature; example i has `values[offsets[i]:offsets[i + 1]]`.

    `offsets` are (batch + 1,); `weights` (n,) scale rows, or None.
    """

    values: torch.Tensor
    offsets: torch.Tensor
    weights: torch.Tensor | None = None


@dataclass(frozen=True)
class Jagged:
    """Ids of all features: those of `keys[0]` for all examples, then those of `keys[1]`, …

    `lengths` (len(keys) · batch,) are the sizes of bags in that order; `weights` is like `values`.
    """

    keys: list[str]
    values: torch.Tensor
    lengths: torch.Tensor
    weights: torch.Tensor | None = None

    def features(self) -> dict[str, Feature]:
        """The features by name."""
        return _split(self.keys, self.values, self.lengths, self.weights)


def features_of(given: Any) -> dict[str, Feature]:
    """The features of `given` by name; raises `ProgramError` for what has none."""
    if isinstance(given, Jagged):
        return given.features()
    if isinstance(given, Mapping):
        return {name: _feature(name, value) for name, value in given.items()}
    if all(hasattr(given, name) for name in ("keys", "values", "lengths_or_none", "stride")):
        return _keyed(given)
    raise _unusable("features", given)


def _keyed(given: Any) -> dict[str, Feature]:
    """The features of a `KeyedJaggedTensor`, or of what looks like one."""
    lengths = given.lengths_or_none()
    if lengths is None:
        lengths = given.offsets_or_none().diff()
    return _split(list(given.keys()), given.values(), lengths, given.weights_or_none())


def _split(
    keys: list[str], values: torch.Tensor, lengths: torch.Tensor, weights: torch.Tensor | None
) -> dict[str, Feature]:
    _check_lengths(keys, values, lengths)
    per_key = lengths.reshape(len(keys), -1)
    offsets = torch.zeros(len(keys), per_key.shape[1] + 1, dtype=torch.int64, device=values.device)
    torch.cumsum(per_key, 1, out=offsets[:, 1:])
    sizes = offsets[:, -1].tolist()
    parts = values.split(sizes)
    weighted = [None] * len(keys) if weights is None else weights.split(sizes)
    each = zip(keys, parts, offsets, weighted, strict=True)
    return {key: Feature(part, at, weight) for key, part, at, weight in each}


def _check_lengths(keys: list[str], values: torch.Tensor, lengths: torch.Tensor) -> None:
    """Raise `ProgramError` unless bags of these lengths have all the values."""
    named = ", ".join(keys) or "no feature"
    if len(set(keys)) < len(keys) or not keys:
        raise _misshapen(f"the ids are of {named}", "Name each feature once.")
    if lengths.numel() % len(keys) or _is_negative(lengths) or int(lengths.sum()) != len(values):
        raise _misshapen(
            f"{named} have {len(values)} ids, and {lengths.numel()} lengths of "
            f"{int(lengths.sum())} ids in all",
            "Give a length for each feature and example, that of an empty bag is 0; their sum is "
            "the number of ids.",
        )


def _is_negative(numbers: torch.Tensor) -> bool:
    return bool((numbers < 0).any())


def _feature(name: str, value: Any) -> Feature:
    if isinstance(value, tuple) and len(value) in (2, 3):
        return _with_offsets(name, *value)
    if isinstance(value, torch.Tensor) and value.is_nested:
        return Feature(value.values(), value.offsets())
    if isinstance(value, torch.Tensor) and value.dim() in (1, 2):
        bags = value if value.dim() == 2 else value[:, None]
        offsets = torch.arange(len(bags) + 1, device=value.device) * bags.shape[1]
        return Feature(bags.reshape(-1), offsets)
    raise _unusable(f"feature {name}", value)


def _with_offsets(
    name: str, values: Any, offsets: Any, weights: torch.Tensor | None = None
) -> Feature:
    if not (isinstance(values, torch.Tensor) and isinstance(offsets, torch.Tensor)):
        raise _unusable(f"feature {name}", values)
    is_whole = offsets.numel() and not offsets[0] and int(offsets[-1]) == len(values)
    if not is_whole or _is_negative(offsets.diff()):
        raise _misshapen(
            f"feature {name} has {len(values)} ids, and {offsets.numel()} offsets that do not rise "
            f"from 0 to {len(values)}",
            "Give batch + 1 offsets, as torch's EmbeddingBag takes with include_last_offset=True: "
            "the last one is the number of ids.",
        )
    return Feature(values, offsets, weights)


def _misshapen(what: str, hint: str) -> ProgramError:
    return ProgramError(f"{what}; nothing was looked up.", hint=hint)


def _unusable(what: str, given: Any) -> ProgramError:
    return ProgramError(
        f"{what} were given as {type(given).__name__}, of which psrt.torch cannot read ids.",
        hint="Give a psrt.torch.Jagged, a KeyedJaggedTensor, or a dict of feature to tensor "
        "(batch, n) or to (values, offsets).",
    )
