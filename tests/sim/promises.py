"""Promises of a history, checked in its end.

It passes when every process has ended, each failed one with an error of the catalogue, and the
tables hold what the ledger says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psrt.core.errors import ErrorCode
from psrt.core.specs import Sync
from psrt.pserver.serving.service import PserverService
from psrt.pserver.tables import DenseTable
from tests.sim.backups import services_of
from tests.sim.cuts import check_cuts, check_last
from tests.sim.ledger import SHARED, row_of, step_of

if TYPE_CHECKING:
    from tests.sim.cluster import SimCluster, SimPserver


class Violation(AssertionError):
    """A history in which a promise was broken."""


def check(cluster: SimCluster) -> None:
    """Raise `Violation` unless every promise holds."""
    trained = {e for name, e in cluster.ends.items() if name.startswith("trainer")}
    beyond = any(is_beyond(cluster, each) for each in cluster.pservers)
    is_gentle = cluster.scenario.is_gentle and not beyond
    check_ends(cluster, trained, is_gentle)
    cluster.disk.failing_syncs.clear()
    were_replaced = any(trainer.starts > 1 for trainer in cluster.trainers)
    whole = not cluster.scenario.strikes and not were_replaced and trained == {"completed"}
    cluster.cuts = check_cuts(
        cluster.directory("check"), cluster.scenario.steps, cluster.mode, whole
    )
    if trained == {"completed"} and not beyond:
        _check_tables(cluster, were_replaced)
    if _has_last_cut(cluster, is_gentle):
        check_last(cluster.directory("check"), *held_by(cluster))
    if whole and cluster.is_geo:
        _check_replicas(cluster, *held_by(cluster))


def check_ends(cluster: SimCluster, trained: set[str], is_gentle: bool) -> None:
    """Raise `Violation` unless each process ended well, or by name; `trained` are ends of trainers.

    In a history that `is_gentle` all complete.
    """
    if defects := [line for line in cluster.world.trace if "  defect: " in line]:
        raise Violation("; ".join(defects))
    _check_interrupted(cluster, trained)
    for name, end in cluster.ends.items():
        if end.startswith((ErrorCode.INTERNAL.name, "crashed")):
            raise Violation(f"{name} {end}")
    if is_gentle and trained != {"completed"}:
        raise Violation(f"a job without lasting faults did not complete: {cluster.ends}")
    if is_gentle:
        _check_pservers(cluster)


def _check_interrupted(cluster: SimCluster, trained: set[str]) -> None:
    """Raise `Violation` if a job counts as completed although the policy ends it without a trainer
    that was interrupted.

    With `shrink` it goes on while another one has not sent COMPLETE.
    """
    is_allowed = cluster.mode.on_trainer_loss == "shrink" and bool(cluster.stopping)
    for name, end in cluster.ends.items():
        is_completed = name.startswith("pserver") and end == "completed"
        if "interrupted" in trained and is_completed and not is_allowed:
            raise Violation(f"{name} completed a job without an interrupted trainer")


def check_tables(cluster: SimCluster) -> None:
    """Raise `AssertionError` unless the tables hold what the ledger says."""
    cluster.ledger.check(*held_by(cluster), cluster.mode)


def _check_tables(cluster: SimCluster, were_replaced: bool) -> None:
    """Raise `AssertionError` unless each step of the job was applied once.

    In Sync with `shrink` a pserver may close a round without a dead trainer, and another not.
    """
    rows, dense = held_by(cluster)
    mode = cluster.mode
    differs = were_replaced and isinstance(mode, Sync) and mode.on_trainer_loss == "shrink"
    if cluster.is_geo:
        cluster.ledger.acknowledged -= _lost_with_trainers(cluster)
    else:
        counts = enumerate(cluster.scenario.steps)
        every = {row_of(trainer, 0, step) for trainer, n in counts for step in range(n)}
        cluster.ledger.acknowledged |= every
    cluster.ledger.check(rows, dense, cluster.mode, is_even=not differs)


def _lost_with_trainers(cluster: SimCluster) -> set[int]:
    """The rows of processes of Geo that were killed, if a pserver was: nobody sends them again."""
    if not any(pserver.killed_s for pserver in cluster.pservers):
        return set()
    newest = {trainer.number: trainer.starts - 1 for trainer in cluster.trainers}
    steps = ((row, step_of(row)) for row in cluster.ledger.acknowledged)
    return {row for row, (trainer, process, _) in steps if process < newest[trainer]}


def _has_last_cut(cluster: SimCluster, is_gentle: bool) -> bool:
    """True if the newest cut must have all that the pservers hold, but for states of Geo."""
    scenario, ends = cluster.scenario, cluster.ends
    are_over = all(ends.get(f"pserver {number}") == "completed" for number in (0, 1))
    survives = is_gentle and not scenario.failing_syncs and not cluster.is_geo
    return scenario.ends_with_cut and survives and are_over


def _check_replicas(
    cluster: SimCluster, rows: dict[int, float], dense: dict[str, np.ndarray]
) -> None:
    """Raise `Violation` unless all replicas of Geo have the values of the pservers."""
    ids = np.array(list(rows), np.int64)
    for values, own in cluster.replicas:
        read = own.tables["emb"].read(ids)[:, 0].tolist()
        whole = {float(each) for array in values.values() for each in array.reshape(-1)}
        held = {float(each) for array in dense.values() for each in array}
        if read != list(rows.values()) or whole != held:
            raise Violation(f"a replica holds {read}, {whole}, not {rows}, {held}")


def _services(cluster: SimCluster) -> list[PserverService]:
    if cluster.scenario.has_backups:
        return services_of(cluster)
    return [pserver.service for pserver in cluster.pservers if pserver.service is not None]


def is_beyond(cluster: SimCluster, pserver: SimPserver) -> bool:
    """True if nothing is promised of its tables.

    It was killed after all trainers had trained, so nobody sends it anything again, unless they
    stay for the cut at the end. Or before a trainer had joined it, or with no whole copy at its
    backup; then its job ended with an error.
    """
    stay = cluster.scenario.is_durable and cluster.scenario.ends_with_cut
    return pserver.is_anew or (pserver.killed_s > cluster.trained_s and not stay)


def _check_pservers(cluster: SimCluster) -> None:
    """Raise `Violation` if a pserver of a completed job ended with an error."""
    for name, end in cluster.ends.items():
        if name.startswith("pserver") and end not in ("completed", "killed"):
            raise Violation(f"{name} of a completed job ended with {end}")


def held_by(cluster: SimCluster) -> tuple[dict[int, float], dict[str, np.ndarray]]:
    """Rows by id and dense values that the tables hold in the end."""
    rows: dict[int, float] = {}
    dense: dict[str, np.ndarray] = {}
    for service in _services(cluster):
        tables = service.tables
        if not len(tables):
            continue
        ids, weights, _ = tables.sparse("emb").export(0, 1 << 20)
        held = zip(ids.tolist(), weights[:, 0].tolist(), strict=True)
        rows |= {row: value for row, value in held if row >= 0}
        for table in tables.all():
            if isinstance(table, DenseTable):
                dense[table.spec.name] = table.read()[0]
    assert SHARED in rows or not rows or cluster.ledger.sent
    return rows, dense
