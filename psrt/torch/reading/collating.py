"""`collate`: ragged lists of ids of a `DataLoader` as one `Jagged` for each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import default_collate

from psrt.core.errors import DataError
from psrt.torch.jagged import Jagged

Ids = Mapping[str, Any]


def collate(examples: Sequence[Any], features: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Return `(Jagged, *rest)` of examples `(ids, *rest)`; the `collate_fn` of a `DataLoader`.

    `ids` of an example maps a feature to one id, or to a list, array or tensor (n,) of them, n ≥ 0.
    The rest is collated as by torch. With `features` (`functools.partial(collate, features=[…])`)
    examples are mappings: these features become the `Jagged`, all other entries a dict; a feature
    that an example lacks is an empty list. Raises `DataError` with the number of the example.
    """
    if features is not None:
        jagged = _jagged([_picked(example, features) for example in examples], list(features))
        others = [{k: v for k, v in each.items() if k not in features} for each in examples]
        return jagged, default_collate(others)
    ids = [example[0] if isinstance(example, tuple | list) else example for example in examples]
    jagged = _jagged(ids, list(ids[0]) if isinstance(ids[0], Mapping) else [])
    if not isinstance(examples[0], tuple | list):
        return (jagged,)
    return jagged, *default_collate([tuple(example[1:]) for example in examples])


def _picked(example: Ids, features: Sequence[str]) -> Ids:
    return {name: example.get(name, ()) for name in features}


def _jagged(examples: Sequence[Any], keys: list[str]) -> Jagged:
    for number, example in enumerate(examples):
        if not isinstance(example, Mapping) or set(example) != set(keys) or not keys:
            named = ", ".join(example) if isinstance(example, Mapping) else type(example).__name__
            raise DataError(
                f"example {number} of a batch has ids of {named or 'no feature'}, the first one of "
                f"{', '.join(keys) or 'no feature'}; no batch was made.",
                hint="Give each example a mapping of the same features to ids, or name them: "
                "functools.partial(pt.collate, features=[...]).",
            )
    bags = [_bag(example[key], number) for key in keys for number, example in enumerate(examples)]
    return Jagged(keys, torch.cat(bags), torch.tensor([len(bag) for bag in bags]))


def _bag(given: Any, number: int) -> torch.Tensor:
    """Ids (n,) int64 of one example."""
    try:
        ids = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"example {number} of a batch has ids {given!r:.60}: {error}. No batch was made.",
            hint="Ids are one whole number, or a list of them, each an int64.",
        ) from None
    if ids.numel() and (ids.is_floating_point() or ids.dtype == torch.bool or ids.dim() > 1):
        raise DataError(
            f"example {number} of a batch has ids of {ids.dtype} with shape {tuple(ids.shape)}; no "
            "batch was made.",
            hint="Ids are one whole number, or a list of them.",
        )
    return ids.reshape(-1).to(torch.int64)


__all__ = ["collate"]
