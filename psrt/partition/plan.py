"""The partition plan: which block and which virtual shard lives on which endpoint.

Every trainer builds the plan from the same program and the same settings and must arrive at the
same one; `hash()` of the canonical JSON goes into the handshake, where a pserver refuses a trainer
whose plan differs. Parameters are placed in the order of their names, so the plan does not depend
on the order in which they are given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

from psrt.core.columns import aligned
from psrt.core.errors import ConfigError, ErrorCode, ProgramError
from psrt.core.specs import (
    LAYER_WISE,
    Add,
    CommunicationMode,
    ConstantRate,
    DenseTableSpec,
    Geo,
    Initializer,
    LearningRate,
    Optimizer,
    Regularizer,
    Sgd,
    SparseTableSpec,
    TableOptions,
    TableSpec,
    option_problems,
    to_plain,
)
from psrt.core.types import Shape
from psrt.partition.buckets import in_buckets
from psrt.partition.dispatchers import Dispatcher, dispatch, round_robin
from psrt.partition.slicing import DEFAULT_MAX_BLOCK_SIZE, DEFAULT_MIN_BLOCK_SIZE, Block, cut
from psrt.partition.vshards import shard_bounds

_FLOAT_BYTES = 4

Spec = TypeVar("Spec", DenseTableSpec, SparseTableSpec)


class ParameterLike(Protocol):
    """What the plan reads of a parameter (`psrt.graph.program.Parameter` has it all)."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def initializer(self) -> Initializer: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def distributed(self) -> bool: ...
    @property
    def padding_id(self) -> int | None: ...
    @property
    def options(self) -> TableOptions: ...
    @property
    def seed(self) -> int: ...
    @property
    def optimizer(self) -> Optimizer | None: ...
    @property
    def learning_rate(self) -> LearningRate | None: ...
    @property
    def regularizer(self) -> Regularizer | None: ...
    @property
    def trainable(self) -> bool: ...


@dataclass(frozen=True)
class PlacedBlock:
    """One block and the endpoint that holds it."""

    endpoint: str
    spec: DenseTableSpec


@dataclass(frozen=True)
class Held:
    """What one endpoint holds: blocks, virtual shards of every sparse table, and the share of all
    dense bytes, 0 to 1."""

    endpoint: str
    dense_bytes: int
    blocks: int
    virtual_shards: int
    share: float


@dataclass(frozen=True)
class PartitionPlan:
    """`blocks` are sorted by parameter and offset; `sparse` are whole tables, sorted by name.

    Every endpoint holds a range of virtual shards of every sparse table; `shard_bounds[e]` is the
    first shard of endpoint e. `adds_for` is, in Geo, the hash of the plan of the same tables with
    the optimizers that trainers run: those must agree as well.
    """

    endpoints: tuple[str, ...]
    blocks: tuple[PlacedBlock, ...]
    sparse: tuple[SparseTableSpec, ...]
    adds_for: str = ""

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
        """What the pserver at `endpoint` registers: its blocks and its share of each table."""
        first, last = self._shard_range(endpoint)
        shares = [replace(spec, first_shard=first, last_shard=last) for spec in self.sparse]
        return [*self.dense_specs(endpoint), *shares]

    def to_json(self) -> str:
        """The canonical text: equal plans give equal text."""
        plain = {
            "endpoints": list(self.endpoints),
            "blocks": [[block.endpoint, to_plain(block.spec)] for block in self.blocks],
            "sparse": [to_plain(spec) for spec in self.sparse],
            **({"adds_for": self.adds_for} if self.adds_for else {}),
        }
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    def hash(self) -> str:
        """Hex sha256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def balance(self) -> str:
        """A table for people: what each endpoint holds, and its share of the dense bytes."""
        header = ("endpoint", "dense bytes", "blocks", "virtual shards", "share")
        rows = [header, *(_balance_row(self.held(endpoint)) for endpoint in self.endpoints)]
        return "\n".join(aligned(rows))

    def held(self, endpoint: str) -> Held:
        sizes = [spec.size for spec in self.dense_specs(endpoint)]
        total = sum(block.spec.size for block in self.blocks)
        first, last = self._shard_range(endpoint)
        share = sum(sizes) / total if total else 0.0
        return Held(endpoint, sum(sizes) * _FLOAT_BYTES, len(sizes), last - first, share)

    def _shard_range(self, endpoint: str) -> tuple[int, int]:
        if endpoint not in self.endpoints:
            raise ConfigError(
                f"endpoint {endpoint} is not in the plan",
                hint=f"The plan knows {', '.join(self.endpoints)}.",
            )
        index = self.endpoints.index(endpoint)
        return self.shard_bounds[index], self.shard_bounds[index + 1]


def _balance_row(held: Held) -> tuple[str, ...]:
    numbers = f"{held.dense_bytes:,}", str(held.blocks), str(held.virtual_shards)
    return held.endpoint, *numbers, f"{held.share:.1%}"


def build_plan(
    parameters: Iterable[ParameterLike],
    endpoints: Sequence[str],
    *,
    slice_var_up: bool = True,
    min_block_size: int = DEFAULT_MIN_BLOCK_SIZE,
    max_block_size: int = DEFAULT_MAX_BLOCK_SIZE,
    dispatcher: Dispatcher = round_robin,
    mode: CommunicationMode | None = None,
) -> PartitionPlan:
    """Cut and place all parameters the pservers hold.

    Sparse and distributed parameters become sparse tables on all endpoints. A dense parameter
    that is not trained stays with the trainers, which all compute the same initial value. One
    whose optimizer takes its norm is not cut. In Geo optimizers run on the trainers, so the tables
    only add up changes.
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
    places = dispatch(dispatcher, blocks, endpoints)
    sections = in_buckets(places, [block.size for block in blocks], max_block_size)
    placed = zip(places, blocks, sections, strict=True)
    plan = PartitionPlan(
        tuple(endpoints),
        tuple(
            PlacedBlock(at, _dense_spec(block, dense[block.parameter], section))
            for at, block, section in placed
        ),
        tuple(_sparse_spec(parameter) for parameter in sparse),
    )
    return _adding(plan) if isinstance(mode, Geo) else plan


def _adding(plan: PartitionPlan) -> PartitionPlan:
    """The same placement, of tables that add what they are sent."""
    for spec in plan.sparse:
        _check_for_geo(spec)
    return PartitionPlan(
        plan.endpoints,
        tuple(PlacedBlock(block.endpoint, _added(block.spec)) for block in plan.blocks),
        tuple(_added(spec) for spec in plan.sparse),
        plan.hash(),
    )


def _added(spec: Spec) -> Spec:
    return replace(spec, optimizer=Add(), learning_rate=ConstantRate(1.0), regularizer=None)


def _check_for_geo(spec: SparseTableSpec) -> None:
    """In Geo every trainer holds its own rows, so a pserver can refuse, grow or drop none."""
    given = [name for name in ("admission", "lifecycle", "growth") if getattr(spec, name)]
    if given:
        raise ConfigError(
            f"table {spec.name} has {' and '.join(given)}, and the job runs in mode Geo, where "
            "trainers hold the rows they train",
            hint="Leave these options out, or run the job in another mode.",
        )


def _check_endpoints(endpoints: Sequence[str]) -> None:
    if not endpoints:
        raise ConfigError("there are no pserver endpoints to place parameters on")
    shard_bounds(len(endpoints))  # refuses more than can be, before any block is placed
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


def _rule(parameter: ParameterLike) -> tuple[Optimizer, LearningRate]:
    """The optimizer and rate a pserver applies; a table that is not trained gets rate 0."""
    if not parameter.trainable:
        return Sgd(), ConstantRate(0.0)
    if parameter.optimizer is None or parameter.learning_rate is None:
        raise ProgramError(
            f"parameter {parameter.name} has no optimizer",
            hint="Call minimize(loss) of an optimizer before the program is partitioned.",
        )
    return parameter.optimizer, parameter.learning_rate


def _dense_spec(block: Block, parameter: ParameterLike, section: int) -> DenseTableSpec:
    optimizer, rate = _rule(parameter)
    return DenseTableSpec(
        name=block.name,
        parameter=block.parameter,
        shape=tuple(parameter.shape),
        offset=block.offset,
        size=block.size,
        initializer=parameter.initializer,
        optimizer=optimizer,
        learning_rate=rate,
        seed=parameter.seed,
        regularizer=parameter.regularizer,
        section=section,
    )


def _sparse_spec(parameter: ParameterLike) -> SparseTableSpec:
    if len(parameter.shape) != 2:
        raise ProgramError(
            f"sparse parameter {parameter.name} has shape {parameter.shape}; "
            "a table of rows needs (height, width)",
            code=ErrorCode.SHAPE_MISMATCH,
        )
    optimizer, rate = _rule(parameter)
    options = parameter.options
    for problem in option_problems(options, parameter.shape[1]):
        raise ConfigError(
            f"table {parameter.name} cannot be placed: {problem}",
            hint="docs/reference/tables.md tells all options and their limits.",
        )
    return SparseTableSpec(
        name=parameter.name,
        width=parameter.shape[1],
        initializer=parameter.initializer,
        optimizer=optimizer,
        learning_rate=rate,
        seed=parameter.seed,
        padding_id=parameter.padding_id,
        regularizer=parameter.regularizer,
        admission=options.admission,
        score=options.score,
        lifecycle=options.lifecycle,
        growth=options.growth,
        storage=options.storage,
    )
