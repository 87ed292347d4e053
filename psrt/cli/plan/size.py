"""Output of `psrt plan --size`: a `Sizing` as text and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from psrt.core.columns import aligned
from psrt.core.quantities import format_bytes, format_rate
from psrt.sizing import concerns
from psrt.sizing.loads import PROCESS_BYTES, PserverLoad
from psrt.sizing.sizing import Sizing

Line = tuple[str, ...]

_MEMORY: dict[str, Callable[[PserverLoad], float]] = {
    "row headers": lambda load: sum(t.rows * t.row.header for t in load.sparse),
    "row weights": lambda load: sum(t.rows * t.row.weights for t in load.sparse),
    "row optimizer state": lambda load: sum(t.rows * t.row.state for t in load.sparse),
    "index of rows": lambda load: sum(t.index_bytes for t in load.sparse),
    "ids that wait for rows": lambda load: sum(t.waiting_bytes for t in load.sparse),
    "dense values": lambda load: load.dense.values_bytes,
    "dense optimizer state": lambda load: load.dense.state_bytes,
    "copies of dense values": lambda load: load.dense.copies_bytes,
    "ids remembered": lambda load: load.remembered_bytes,
    "calls under way": lambda load: load.buffer_bytes,
    "process": lambda load: PROCESS_BYTES,
}


def to_text(sizing: Sizing) -> str:
    """Tables, verdict, memory, calls, links, and warnings."""
    parts = [aligned(list(_tables(sizing)))] if sizing.workload.uses else []
    parts += [[_verdict(sizing)], aligned(list(_memory(sizing)))]
    parts += [aligned(list(_calls(sizing)))]
    if sizing.workload.steps_per_s:
        parts += [aligned(list(_links(sizing)))]
    parts += [[f"! {sentence}"] for sentence in concerns.of_sizing(sizing)]
    return "\n\n".join("\n".join(part) for part in parts)


def to_plain(sizing: Sizing) -> dict[str, Any]:
    """The numbers of the text: bytes and counts, units in their names."""
    trainer = sizing.trainer
    return {
        "pservers": sizing.pservers,
        "decided_by": sizing.decided_by,
        "least_pservers": sizing.least,
        "tables": [
            {
                "table": use.spec.name,
                "rows": use.rows,
                "ids_per_step": use.ids,
                "distinct_ids_per_step": use.distinct,
                "growth": use.growth,
            }
            for use in sizing.workload.uses
        ],
        "per_pserver": [_plain_load(load) for load in sizing.loads],
        "trainer": {
            "up_bytes_per_step": trainer.up_bytes,
            "down_bytes_per_step": trainer.down_bytes,
            "requests_per_step": trainer.requests,
            "steps_per_s": trainer.steps_per_s,
        },
        "warnings": list(concerns.of_sizing(sizing)),
    }


def _plain_load(load: PserverLoad) -> dict[str, Any]:
    return {
        "endpoint": load.endpoint,
        "rows": load.rows,
        "memory_bytes": round(load.memory_bytes),
        "memory": {name: round(part(load)) for name, part in _MEMORY.items()},
        "connections": load.connections,
        "requests_per_s": load.requests_per_s,
        "in_bytes_per_s": load.in_bytes_per_s,
        "out_bytes_per_s": load.out_bytes_per_s,
        "calls": [
            {
                "call": call.name,
                "per_step": call.per_step,
                "up_bytes_per_step": call.up_bytes,
                "down_bytes_per_step": call.down_bytes,
            }
            for call in load.calls
        ],
    }


def _verdict(sizing: Sizing) -> str:
    noun = "pserver" if sizing.pservers == 1 else "pservers"
    if not sizing.least:
        return f"{sizing.pservers} {noun}, as asked"
    needs = ", ".join(f"{limit} asks for {count}" for limit, count in sizing.least.items())
    if sizing.pservers == 1:
        return "1 pserver is enough"
    return f"{sizing.pservers} {noun}: {sizing.decided_by} decides ({needs})"


def _tables(sizing: Sizing) -> Iterator[Line]:
    yield "sparse table", "rows", "bytes a row", "ids a step", "distinct", "more with steps"
    rows = {table.table: table.row.total for table in sizing.loads[0].sparse}
    for use in sizing.workload.uses:
        name = use.spec.name
        counts = f"{use.rows:,}", f"{rows[name]:,}", f"{use.ids:,.0f}", f"{use.distinct:,.0f}"
        yield name, *counts, f"steps^{use.growth:.2f}"


def _memory(sizing: Sizing) -> Iterator[Line]:
    fullest, all_loads = sizing.fullest, sizing.loads
    yield "memory", f"of {fullest.endpoint}", f"of all {sizing.pservers}"
    yield "rows", f"{fullest.rows:,}", f"{sum(load.rows for load in all_loads):,}"
    for name, part in _MEMORY.items():
        if part(fullest):
            yield name, format_bytes(part(fullest)), format_bytes(sum(map(part, all_loads)))
    total = sum(load.memory_bytes for load in all_loads)
    yield "in all", format_bytes(fullest.memory_bytes), format_bytes(total)
    used = fullest.memory_bytes / sizing.limits.memory_bytes
    yield f"of {format_bytes(sizing.limits.memory_bytes)}", f"{used:.0%}", ""


def _calls(sizing: Sizing) -> Iterator[Line]:
    """The calls of one trainer."""
    busiest, trainer = sizing.busiest, sizing.trainer
    yield f"a step, to {busiest.endpoint}", "calls", "bytes up", "bytes down"
    for call in busiest.calls:
        up, down = format_bytes(call.up_bytes), format_bytes(call.down_bytes)
        yield call.name, f"{call.per_step:.3g}", up, down
    sums = format_bytes(trainer.up_bytes), format_bytes(trainer.down_bytes)
    yield f"to all {sizing.pservers}", f"{trainer.requests:.3g}", *sums


def _links(sizing: Sizing) -> Iterator[Line]:
    busiest, trainer, limit = sizing.busiest, sizing.trainer, sizing.limits.link_bytes_per_s
    cores = sizing.limits.cores
    head = "a second", "calls", "connections", "in", "out", f"of {format_rate(limit)}"
    yield *head, f"of {cores} cores, about"
    calls = f"{busiest.requests_per_s:,.0f}", f"{busiest.connections:,}"
    rates = format_rate(busiest.in_bytes_per_s), format_rate(busiest.out_bytes_per_s)
    used = f"{busiest.link_bytes_per_s / limit:.0%}", f"{busiest.cpu_used(cores):.0%}"
    yield busiest.endpoint, *calls, *rates, *used
    calls = f"{trainer.requests * trainer.steps_per_s:,.0f}", f"{_connections(sizing):,}"
    rates = format_rate(trainer.in_bytes_per_s), format_rate(trainer.out_bytes_per_s)
    yield "a trainer", *calls, *rates, f"{trainer.link_bytes_per_s / limit:.0%}", ""


def _connections(sizing: Sizing) -> int:
    return sum(len(load.calls) for load in sizing.loads)
