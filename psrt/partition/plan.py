"""The partition plan: the endpoint of each block and of each virtual shard.

All trainers build the plan from one program with equal settings, and must get equal plans: a
pserver refuses a trainer whose plan has another hash. Parameters are placed in the order of their
names, so the plan does not depend on the order in which they are passed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from psrt.core.columns import aligned
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import (
    LAYER_WISE,
    CommunicationMode,
    DenseTableSpec,
    Geo,
    SparseTableSpec,
    TableSpec,
    to_plain,
)
from psrt.core.types import Shape
from psrt.partition.buckets import in_buckets
from psrt.partition.dispatchers import Dispatcher, balanced, dispatch
from psrt.partition.parameter_specs import (
    ParameterLike,
    adding,
    check_for_geo,
    dense_spec,
    sparse_spec,
)
from psrt.partition.slicing import DEFAULT_MAX_BLOCK_SIZE, DEFAULT_MIN_BLOCK_SIZE, cut
from psrt.partition.vshards import shard_bounds

_FLOAT_BYTES = 4


@dataclass(frozen=True)
class PlacedBlock:
    """One block and the endpoint that holds it."""

    endpoint: str
    spec: DenseTableSpec


@dataclass(frozen=True)
class EndpointBalance:
    """The blocks and virtual shards of one endpoint; `share` of all dense bytes, 0 to 1."""

    endpoint: str
    dense_bytes: int
    blocks: int
    virtual_shards: int
    share: float


@dataclass(frozen=True)
class PartitionPlan:
    """`blocks` are sorted by parameter and offset; `sparse` are whole tables, sorted by name.

    Every endpoint holds a range of virtual shards of every sparse table; `shard_bounds[e]` is the
    first shard of endpoint e. In Geo, `adds_for` is the hash of this plan with the optimizers that
    trainers run, since those must agree as well. `warm_start` is the canonical JSON of a
    `WarmStart`, "" = none.
    """

    endpoints: tuple[str, ...]
    blocks: tuple[PlacedBlock, ...]
    sparse: tuple[SparseTableSpec, ...]
    adds_for: str = ""
    warm_start: str = ""

    @cached_property
    def shard_bounds(self) -> tuple[int, ...]:
        return shard_bounds(len(self.endpoints))

    @cached_property
    def dense_shapes(self) -> dict[str, Shape]:
        """Shape of every dense parameter by name, in the order of the plan."""
        return {block.spec.parameter: block.spec.shape for block in self.blocks}

    def dense_specs(self, endpoint: str) -> list[DenseTableSpec]:
        return [block.spec for block in self.blocks if block.endpoint == endpoint]

    def specs_for(self, endpoint: str) -> list[TableSpec]:
        """The tables of the pserver at `endpoint`: its blocks, and its shards of sparse tables."""
        first, last = self._shard_range(endpoint)
        sparse = [replace(spec, first_shard=first, last_shard=last) for spec in self.sparse]
        return [*self.dense_specs(endpoint), *sparse]

    def whole_specs(self) -> list[TableSpec]:
        """The declaration of each parameter, neither sliced nor placed, dense ones first."""
        dense = {block.spec.parameter: block.spec for block in self.blocks}
        whole = [
            replace(spec, name=name, offset=0, size=math.prod(spec.shape), section=0)
            for name, spec in dense.items()
        ]
        return [*whole, *self.sparse]

    def to_json(self) -> str:
        """The canonical text: equal plans give equal text."""
        plain = {
            "endpoints": list(self.endpoints),
            "blocks": [[block.endpoint, to_plain(block.spec)] for block in self.blocks],
            "sparse": [to_plain(spec) for spec in self.sparse],
            **({"adds_for": self.adds_for} if self.adds_for else {}),
            **({"warm_start": self.warm_start} if self.warm_start else {}),
        }
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    def hash(self) -> str:
        """Hex sha256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def balance(self) -> str:
        """A text table of `balance_of` all endpoints."""
        header = ("endpoint", "dense bytes", "blocks", "virtual shards", "share")
        rows = [header, *(_balance_row(self.balance_of(each)) for each in self.endpoints)]
        return "\n".join(aligned(rows))

    def balance_of(self, endpoint: str) -> EndpointBalance:
        sizes = [spec.size for spec in self.dense_specs(endpoint)]
        total = sum(block.spec.size for block in self.blocks)
        first, last = self._shard_range(endpoint)
        share = sum(sizes) / total if total else 0.0
        dense_bytes = sum(sizes) * _FLOAT_BYTES
        return EndpointBalance(endpoint, dense_bytes, len(sizes), last - first, share)

    def _shard_range(self, endpoint: str) -> tuple[int, int]:
        if endpoint not in self.endpoints:
            raise ConfigError(
                f"endpoint {endpoint} is not in the plan",
                hint=f"The plan has {', '.join(self.endpoints)}.",
            )
        index = self.endpoints.index(endpoint)
        return self.shard_bounds[index], self.shard_bounds[index + 1]


def _balance_row(balance: EndpointBalance) -> tuple[str, ...]:
    numbers = f"{balance.dense_bytes:,}", str(balance.blocks), str(balance.virtual_shards)
    return balance.endpoint, *numbers, f"{balance.share:.1%}"


def build_plan(
    parameters: Iterable[ParameterLike],
    endpoints: Sequence[str],
    *,
    slice_var_up: bool = True,
    min_block_size: int = DEFAULT_MIN_BLOCK_SIZE,
    max_block_size: int = DEFAULT_MAX_BLOCK_SIZE,
    dispatcher: Dispatcher = balanced,
    mode: CommunicationMode | None = None,
) -> PartitionPlan:
    """Cut and place all parameters that pservers hold.

    Sparse and distributed parameters become sparse tables on all endpoints. A dense parameter that
    is not trained stays on the trainers, which all compute the same initial value. A parameter
    whose optimizer uses its norm is not cut. In Geo optimizers run on the trainers, so the tables
    only add changes.

    Raises `ConfigError` or `ProgramError` for endpoints, parameters or options that cannot be
    placed.
    """
    _check_endpoints(endpoints)
    ordered = _by_name(parameters)
    sparse = [parameter for parameter in ordered if _is_table(parameter)]
    dense = {p.name: p for p in ordered if not _is_table(p) and p.trainable}
    blocks = [
        block
        for p in dense.values()
        for block in cut(
            p.name,
            p.shape,
            len(endpoints),
            slice_var_up=slice_var_up and not isinstance(p.optimizer, LAYER_WISE),
            min_block_size=min_block_size,
            max_block_size=max_block_size,
        )
    ]
    chosen = dispatch(dispatcher, blocks, endpoints)
    buckets = in_buckets(chosen, [block.size for block in blocks], max_block_size)
    placed = zip(chosen, blocks, buckets, strict=True)
    plan = PartitionPlan(
        tuple(endpoints),
        tuple(
            PlacedBlock(endpoint, dense_spec(block, dense[block.parameter], bucket))
            for endpoint, block, bucket in placed
        ),
        tuple(sparse_spec(parameter) for parameter in sparse),
    )
    return _adding(plan) if isinstance(mode, Geo) else plan


def _adding(plan: PartitionPlan) -> PartitionPlan:
    """`plan` with tables that add the changes of trainers."""
    for spec in plan.sparse:
        check_for_geo(spec)
    return PartitionPlan(
        plan.endpoints,
        tuple(PlacedBlock(block.endpoint, adding(block.spec)) for block in plan.blocks),
        tuple(adding(spec) for spec in plan.sparse),
        plan.hash(),
    )


def _check_endpoints(endpoints: Sequence[str]) -> None:
    if not endpoints:
        raise ConfigError("there are no pserver endpoints to place parameters on")
    shard_bounds(len(endpoints))  # raises for too many, before any block is placed
    twice = sorted(endpoint for endpoint, times in Counter(endpoints).items() if times > 1)
    if twice:
        raise ConfigError(f"pserver endpoint {twice[0]} is listed twice")


def _by_name(parameters: Iterable[ParameterLike]) -> list[ParameterLike]:
    ordered = sorted(parameters, key=lambda parameter: parameter.name)
    for one, other in itertools.pairwise(ordered):
        if one.name == other.name:
            raise ProgramError(f"two parameters are called {one.name}")
    return ordered


def _is_table(parameter: ParameterLike) -> bool:
    return parameter.sparse or parameter.distributed


__all__ = ["EndpointBalance", "PartitionPlan", "PlacedBlock", "build_plan"]
