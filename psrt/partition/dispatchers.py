"""Which endpoint a block goes to: any callable `(blocks, endpoints) -> endpoint of each block`.

All trainers call the dispatcher with the same blocks in the same order and must get the same
answer, in every process: nothing random, nothing salted (Python's own `hash` of a string is).
Classes with `dispatch(varlist)`, as users of Fluid write them, become dispatchers by `chosen`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from psrt.core.errors import ConfigError
from psrt.core.types import Shape
from psrt.kernels.lowlevel import stable_hash
from psrt.partition.slicing import Block

Dispatcher: TypeAlias = Callable[[Sequence[Block], Sequence[str]], Sequence[str]]


class VarDispatcher(Protocol):
    """What a user of Fluid writes: made with the list of endpoints, asked once a parameter."""

    def dispatch(self, varlist: Sequence[Any]) -> Sequence[str]:
        """An endpoint for each block of one parameter; blocks have `name` and `shape`."""
        ...


SplitMethod: TypeAlias = str | type[VarDispatcher] | VarDispatcher | Dispatcher | None


def round_robin(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """Endpoints in turn, over all blocks of all parameters."""
    return [endpoints[i % len(endpoints)] for i in range(len(blocks))]


def hash_name(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """By a stable hash of the block's name: placement survives adding other parameters."""
    return [endpoints[stable_hash(block.name) % len(endpoints)] for block in blocks]


DISPATCHERS: dict[str, Dispatcher] = {"RoundRobin": round_robin, "HashName": hash_name}


def dispatcher_named(split_method: str) -> Dispatcher:
    """The dispatcher a configuration names."""
    if split_method not in DISPATCHERS:
        known = ", ".join(DISPATCHERS)
        raise ConfigError(f"split_method {split_method!r} is none of {known}")
    return DISPATCHERS[split_method]


def chosen(split_method: SplitMethod) -> Dispatcher:
    """The dispatcher for whatever a user may call a split method; None is round robin."""
    if split_method is None:
        return round_robin
    if isinstance(split_method, str):
        return dispatcher_named(split_method)
    if hasattr(split_method, "dispatch"):
        return by_parameter(split_method)
    if not callable(split_method):
        raise ConfigError(
            f"split_method is {split_method!r}, which places nothing.",
            hint=f"Use {', '.join(DISPATCHERS)}, a class with dispatch(varlist), or a function of "
            "(blocks, endpoints).",
        )
    return split_method


def by_parameter(wanted: type[VarDispatcher] | VarDispatcher) -> Dispatcher:
    """A dispatcher that asks a `VarDispatcher`, or a new one of its class, for every parameter."""

    def dispatcher(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
        one = _made(wanted, endpoints) if isinstance(wanted, type) else wanted
        if hasattr(one, "reset"):
            one.reset()
        of_parameter = itertools.groupby(blocks, lambda block: block.parameter)
        asked = ([DispatchedBlock.of(block) for block in group] for _, group in of_parameter)
        return [at for varlist in asked for at in _answer(one.dispatch(varlist), len(varlist))]

    return dispatcher


def _made(wanted: type[VarDispatcher], endpoints: Sequence[str]) -> VarDispatcher:
    try:
        return wanted(list(endpoints))  # type: ignore[call-arg]
    except TypeError as error:
        raise ConfigError(
            f"the dispatcher {wanted.__name__} could not be made: {error}.",
            hint="Its __init__ takes the list of endpoints and nothing else that has no default.",
        ) from error


class Name(str):
    """A name that may be called for: dispatchers of Fluid say `var.name()` or `var.name`."""

    def __call__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class DispatchedBlock:
    """A block as a `VarDispatcher` sees it; `shape` is (elements,)."""

    name: Name
    shape: Shape

    @classmethod
    def of(cls, block: Block) -> DispatchedBlock:
        return cls(Name(block.name), (block.size,))


def dispatch(
    dispatcher: Dispatcher, blocks: Sequence[Block], endpoints: Sequence[str]
) -> list[str]:
    """Run a dispatcher and refuse an answer that does not place every block on a known endpoint."""
    placed = _answer(dispatcher(blocks, endpoints), len(blocks))
    for block, endpoint in zip(blocks, placed, strict=True):
        if endpoint not in endpoints:
            raise ConfigError(
                f"the dispatcher placed block {block.name} on {endpoint!r}, which is no endpoint",
                hint=f"Endpoints are {', '.join(endpoints)}.",
            )
    return placed


def _answer(given: Any, blocks: int) -> list[Any]:
    """What a dispatcher answered for so many blocks; raises `ConfigError` unless it is as many."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(
            f"the dispatcher answered {given!r} for {blocks} blocks.",
            hint="Return a list: an endpoint for each block, in their order.",
        )
    placed = list(given)
    if len(placed) != blocks:
        raise ConfigError(f"the dispatcher placed {len(placed)} of {blocks} blocks")
    return placed
