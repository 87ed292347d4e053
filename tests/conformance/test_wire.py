"""Gradients and parameters that travel narrow, in every mode: what arrives, what is lost.

Two pservers, in process. Expected numbers are those of SGD in float64, less what a precision may
lose of each gradient and each change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from psrt.communicator.requests.router import Router
from psrt.core.errors import ConfigError, TableError, WireError
from psrt.core.precision import WirePrecision
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message
from tests.support.communicators import (
    ASYNC_AT_ONCE,
    ASYNC_POOL,
    GEO,
    HALF_ASYNC,
    IDS,
    LONG_S,
    PLAN,
    RATE,
    SSP,
    SYNC,
    Builder,
    Cluster,
    ModeUnderTest,
    gradients,
    initial,
    initial_rows,
)

NARROW = ["float16", "bfloat16", "int8"]
STEPS = 6
MODES = {
    "sync": SYNC,
    "async": ASYNC_AT_ONCE,
    "async-pool": ASYNC_POOL,
    "half-async": HALF_ASYNC,
    "ssp": SSP,
    "geo": GEO,
}
HALF_STEP = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "int8": 0.5 / 127}

every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
every_precision = pytest.mark.parametrize("precision", NARROW)


@pytest.fixture
def build() -> Iterator[Builder]:
    builder = Builder("real")
    yield builder
    builder.close()


def train(cluster: Cluster, steps: int = STEPS, scale: float = 1.0) -> dict[str, np.ndarray]:
    def of_one(trainer) -> dict[str, np.ndarray]:
        trainer.start(LONG_S)
        trainer.pull_rows({"emb": IDS})
        for _ in range(steps):
            trainer.begin({"emb": IDS})
            trainer.finish(gradients(scale))
        return trainer.flush(LONG_S)

    return cluster.on_all(of_one)[0]


def held(cluster: Cluster) -> dict[str, np.ndarray]:
    """The values on the pservers, to the bit."""
    first, second = cluster.pservers
    assert isinstance(first, PserverService)
    assert isinstance(second, PserverService)
    blocks = [p.tables.dense(n).read()[0] for p, n in ((first, "w.block0"), (second, "w.block1"))]
    rows: dict[int, np.ndarray] = {}
    for pserver in (first, second):
        ids, weights, _ = pserver.tables.sparse("emb").export(0, 100)
        rows.update(zip(ids.tolist(), weights, strict=True))
    return {
        "b": second.tables.dense("b").read()[0],
        "w": np.concatenate(blocks).reshape(4, 2),
        "emb": np.array([rows[row_id] for row_id in IDS.tolist()]),
    }


def trained(steps: int = STEPS) -> dict[str, np.ndarray]:
    made = gradients()
    moved = {"b": made["b"], "w": made["w"], "emb": made["emb"].values}
    start = {"b": initial("b"), "w": initial("w"), "emb": initial_rows(IDS)}
    return {name: start[name] - steps * float(RATE) * moved[name] for name in start}


# --- every mode -----------------------------------------------------------------------------------


@every_precision
@every_mode
def test_a_narrow_wire_trains_as_far_as_its_rounding_goes(
    build: Builder, mode: ModeUnderTest, precision: str
) -> None:
    cluster = build(mode, wire=WirePrecision(precision))

    train(cluster)

    got, wanted = held(cluster), trained()
    for name in wanted:
        # Each step loses half a step of a number of its size, in Geo of a change and of its answer.
        lost = 2 * STEPS * HALF_STEP[precision] * np.abs(wanted[name]).max()
        np.testing.assert_allclose(got[name], wanted[name], atol=lost)


@every_mode
def test_a_flush_brings_every_bit(build: Builder, mode: ModeUnderTest) -> None:
    cluster = build(mode, wire=WirePrecision("bfloat16"))

    flushed = train(cluster, steps=3, scale=1 / 3)

    for name in ("b", "w"):
        np.testing.assert_array_equal(flushed[name], held(cluster)[name])


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode", [SYNC, HALF_ASYNC, SSP], ids=["sync", "half-async", "ssp"])
def test_half_the_bits_are_half_the_bytes(
    build: Builder, mode: ModeUnderTest, precision: str
) -> None:
    """But for ids, and for what travels once at the start and the end. The tables are small; the
    other modes push or pull as often as they come to it, and rows of geo are float32."""
    wide, narrow = build(mode), build(mode, wire=WirePrecision(precision))

    for cluster in (wide, narrow):
        train(cluster, steps=20)

    def numbers(cluster: Cluster) -> float:
        counted = cluster.trainer.counters.snapshot()
        return float(counted["push_bytes"] + counted["pull_bytes"])

    assert numbers(narrow) < 0.75 * numbers(wide)


def test_a_round_of_two_trainers_gives_the_same_bits_each_time(build: Builder) -> None:
    results = []
    for _ in range(2):
        cluster = build(SYNC, trainers=2, wire=WirePrecision("float16", {"w": "int8"}))
        train(cluster, scale=1 / 3)
        results.append(held(cluster))

    for name in results[0]:
        np.testing.assert_array_equal(results[0][name], results[1][name])


def test_rows_of_geo_do_not_travel_narrow(build: Builder) -> None:
    with pytest.raises(ConfigError, match="rows of table emb cannot travel as int8 in mode geo"):
        build(GEO, wire=WirePrecision("float32", {"emb": "int8"}))


def test_replicas_of_geo_end_with_the_bits_of_the_pservers(build: Builder) -> None:
    cluster = build(GEO, trainers=2, wire=WirePrecision("bfloat16"))
    train(cluster, scale=1 / 3)

    replicas = cluster.on_all(lambda trainer: trainer.stop(LONG_S))

    for name in ("b", "w"):
        for replica in replicas:
            np.testing.assert_array_equal(replica[name], held(cluster)[name])


# --- by table, and what is lost -------------------------------------------------------------------


def test_only_the_tables_named_travel_narrow(build: Builder) -> None:
    cluster = build(SYNC, wire=WirePrecision("float32", {"emb": "float16"}))
    trainer = cluster.trainer

    dense = trainer.start(LONG_S)
    rows = trainer.pull_rows({"emb": IDS})["emb"]

    np.testing.assert_array_equal(dense["w"], initial("w"))
    np.testing.assert_array_equal(rows, initial_rows(IDS).astype(np.float16).astype(np.float32))


def test_a_table_that_does_not_exist_is_refused_with_the_nearest_name(build: Builder) -> None:
    with pytest.raises(ConfigError, match="'embs', which is no parameter") as refusal:
        build(SYNC, wire=WirePrecision("float32", {"embs": "int8"}))

    assert "Did you mean 'emb'?" in refusal.value.hint


@every_precision
def test_what_a_dense_gradient_loses_comes_with_the_next_one(
    build: Builder, precision: str
) -> None:
    """After a hundred gradients less than one of them may be off by, not a hundred times that."""
    cluster, steps = build(HALF_ASYNC, wire=WirePrecision(precision)), 100

    train(cluster, steps=steps, scale=1 / 3)

    largest = float(RATE) * 7 / 3
    for name in ("b", "w"):
        wanted = trained(0)[name] - steps * float(RATE) * gradients()[name] / 3
        off = np.abs(held(cluster)[name] - wanted).max()
        assert off < 2.1 * HALF_STEP[precision] * largest + 1e-4


def test_small_gradients_are_not_lost_in_float16(build: Builder) -> None:
    """Their smallest normal number is 6e-5; those here go down to 1e-9."""
    cluster, scale = build(SYNC, wire=WirePrecision("float16")), 1e-9

    train(cluster, steps=1, scale=scale)

    moved = initial_rows(IDS).astype(np.float64) - held(cluster)["emb"]
    wanted = float(RATE) * scale * gradients()["emb"].values
    # The rows themselves are float32 numbers of up to 0.1.
    np.testing.assert_allclose(moved, wanted, atol=4e-9)
    assert np.abs(moved).max() > 4e-9


# --- what a pserver refuses -----------------------------------------------------------------------


def refused(build: Builder, part: pb.Part, *tensors: np.ndarray) -> str:
    cluster = build(HALF_ASYNC)
    cluster.trainer.start(LONG_S)
    (pserver, _), client = cluster.pservers, cluster.clients(0, 1)[0]
    assert isinstance(pserver, PserverService)
    header = pb.Header(parts=[part], push_key=pb.PushKey(incarnation=7, sequence=9))
    method = Method.PUSH if part.kind < 3 else Method.PULL
    with pytest.raises((WireError, TableError)) as refusal:
        client.call(method, header=header, tensors=tensors, timeout_s=LONG_S)
    client.close()
    return str(refusal.value)


def test_a_pull_in_a_precision_that_does_not_exist_is_refused(build: Builder) -> None:
    told = refused(build, pb.Part(kind=3, table="w.block0", wire=2))

    assert "asks for dtype 2, which replies do not have" in told


@pytest.mark.parametrize(
    ("tensors", "complaint"),
    [
        ((np.zeros(4, np.float64),), "dtype float64"),
        ((np.zeros(4, np.int8),), "scales of the gradient for table 'w.block0' are missing"),
        ((np.zeros(4, np.int8), np.zeros(2, np.float32)), "shape (2,)"),
        ((np.zeros(5, np.float16),), "shape (5,)"),
    ],
    ids=["too wide", "no scales", "too many scales", "another size"],
)
def test_a_push_that_does_not_fit_is_refused(
    build: Builder, tensors: tuple[np.ndarray, ...], complaint: str
) -> None:
    assert complaint in refused(build, pb.Part(kind=1, table="w.block0"), *tensors)


def test_a_reply_in_float32_is_taken_whatever_was_asked_for() -> None:
    """A reply of a pserver without the field."""
    router = Router(PLAN, WirePrecision("int8"))
    requests, whole = router.requests(), np.zeros(3, np.float32)
    router.pull_dense(requests, {"b": whole})

    reply = pb.Header(reply=True, parts=[pb.Part(kind=3, table="b")])
    requests[1].receive(Message(reply, [np.array([1, 2, 3], np.float32)]))

    assert whole.tolist() == [1, 2, 3]
