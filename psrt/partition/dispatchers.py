"""Dispatchers: callables `(blocks, endpoints) -> endpoint of each block`.

All trainers call the dispatcher with equal blocks in equal order and must get equal answers in
every process: nothing random, nothing salted (Python's own `hash` of a string is). `chosen` turns
classes with `dispatch(varlist)`, as users of Fluid write them, into dispatchers.
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
    """A dispatcher of Fluid: constructed with the list of endpoints, called once per parameter."""

    def dispatch(self, varlist: Sequence[Any]) -> Sequence[str]:
        """An endpoint for each block of one parameter; blocks have `name` and `shape`."""
        ...


SplitMethod: TypeAlias = str | type[VarDispatcher] | VarDispatcher | Dispatcher | None


def balanced(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """The endpoint with the fewest elements so far, for the largest block first.

    Graham's rule (1969): the fullest endpoint has at most 4/3 of what the best placement gives it.
    Equal blocks go in their order, to the first of equally full endpoints.
    """
    elements = dict.fromkeys(endpoints, 0)
    placed = [""] * len(blocks)
    for number in sorted(range(len(blocks)), key=lambda number: -blocks[number].size):
        placed[number] = min(endpoints, key=elements.__getitem__)
        elements[placed[number]] += blocks[number].size
    return placed


def round_robin(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """Endpoints in turn, over all blocks of all parameters."""
    return [endpoints[i % len(endpoints)] for i in range(len(blocks))]


def hash_name(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
    """Endpoints by a stable hash of block names: adding parameters moves no other block."""
    return [endpoints[stable_hash(block.name) % len(endpoints)] for block in blocks]


DISPATCHERS: dict[str, Dispatcher] = {
    "Balanced": balanced,
    "RoundRobin": round_robin,
    "HashName": hash_name,
}


def dispatcher_named(split_method: str) -> Dispatcher:
    """The dispatcher of that name; raises `ConfigError` for an unknown one."""
    if split_method not in DISPATCHERS:
        known = ", ".join(DISPATCHERS)
        raise ConfigError(f"split_method {split_method!r} is none of {known}")
    return DISPATCHERS[split_method]


def chosen(split_method: SplitMethod) -> Dispatcher:
    """The dispatcher for any kind of `split_method`; None is `balanced`.

    Raises `ConfigError` for a value that is no dispatcher.
    """
    if split_method is None:
        return balanced
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


def by_parameter(given: type[VarDispatcher] | VarDispatcher) -> Dispatcher:
    """A dispatcher that calls a `VarDispatcher`, or a new one of its class, per parameter."""

    def dispatcher(blocks: Sequence[Block], endpoints: Sequence[str]) -> list[str]:
        one = _made(given, endpoints) if isinstance(given, type) else given
        if hasattr(one, "reset"):
            one.reset()
        of_parameter = itertools.groupby(blocks, lambda block: block.parameter)
        groups = ([DispatchedBlock.of(block) for block in group] for _, group in of_parameter)
        return [at for varlist in groups for at in _answer(one.dispatch(varlist), len(varlist))]

    return dispatcher


def _made(given: type[VarDispatcher], endpoints: Sequence[str]) -> VarDispatcher:
    try:
        return given(list(endpoints))  # type: ignore[call-arg]
    except TypeError as error:
        raise ConfigError(
            f"the dispatcher {given.__name__} could not be made: {error}.",
            hint="Its __init__ takes the list of endpoints and nothing else that has no default.",
        ) from error


class Name(str):
    """A name that is also callable: dispatchers of Fluid use `var.name()` or `var.name`."""

    def __call__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class DispatchedBlock:
    """The argument of a `VarDispatcher` for one block; `shape` is (elements,)."""

    name: Name
    shape: Shape

    @classmethod
    def of(cls, block: Block) -> DispatchedBlock:
        return cls(Name(block.name), (block.size,))


def dispatch(
    dispatcher: Dispatcher, blocks: Sequence[Block], endpoints: Sequence[str]
) -> list[str]:
    """Run a dispatcher; raises `ConfigError` unless it returns a known endpoint for every block."""
    placed = _answer(dispatcher(blocks, endpoints), len(blocks))
    for block, endpoint in zip(blocks, placed, strict=True):
        if endpoint not in endpoints:
            raise ConfigError(
                f"the dispatcher placed block {block.name} on {endpoint!r}, which is no endpoint",
                hint=f"Endpoints are {', '.join(endpoints)}.",
            )
    return placed


def _answer(given: Any, blocks: int) -> list[Any]:
    """The answer of a dispatcher as a list; raises `ConfigError` unless of length `blocks`."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(
            f"the dispatcher answered {given!r} for {blocks} blocks.",
            hint="Return a list: an endpoint for each block, in their order.",
        )
    placed = list(given)
    if len(placed) != blocks:
        raise ConfigError(f"the dispatcher placed {len(placed)} of {blocks} blocks")
    return placed


__all__ = ["Dispatcher", "SplitMethod", "VarDispatcher", "balanced", "chosen", "dispatch"]
__all__ += ["dispatcher_named"]
__all__ += ["hash_name", "round_robin"]
