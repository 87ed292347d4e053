"""Shared memory of a pserver and trainers on its host, and tiny numbers that count as zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.types import F32, I64
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_ROWS, PUSH_ROWS
from tests.support.carriers import eventually
from tests.support.pserver import CALL_TIMEOUT_S, daemon, joined, register

ROWS, WIDTH = 4096, 16
IDS = np.random.default_rng(2).permutation(10 * ROWS)[:ROWS].astype(np.int64)
GRADIENTS = np.random.default_rng(3).standard_normal((ROWS, WIDTH)).astype(np.float32)
TABLE = specs.SparseTableSpec(
    "emb", WIDTH, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0), 1
)


def push(client: Client, ids: I64, gradients: F32) -> None:
    header = pb.Header(push_key=client.next_push_key(), step=1)
    header.parts.add(kind=PUSH_ROWS, table="emb")
    client.call(Method.PUSH, header=header, tensors=[ids, gradients], timeout_s=CALL_TIMEOUT_S)


def pull(client: Client, ids: I64) -> F32:
    header = pb.Header()
    header.parts.add(kind=PULL_ROWS, table="emb")
    reply = client.call(Method.PULL, header=header, tensors=[ids], timeout_s=CALL_TIMEOUT_S)
    rows: F32 = reply.tensors[0]
    return rows


def mappings(pid: int) -> int:
    """Mappings of shared memory that a process has."""
    return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").count("memfd:psrt")


@pytest.mark.parametrize(
    ("flags", "shares"),
    [((), True), (("--shared-mib", "0"), False), (("--unix-dir", "off"), False)],
    ids=["by default", "switched off", "no Unix socket"],
)
def test_rows_are_the_same_whether_they_are_handed_over_in_memory(
    tmp_path: Path, flags: tuple[str, ...], shares: bool
) -> None:
    with daemon(tmp_path, *flags) as pserver:
        client = joined(pserver.endpoint, mode=specs.Async())
        register(client, TABLE)
        kept = [pull(client, IDS)]
        for _ in range(3):
            push(client, IDS, GRADIENTS)
            kept.append(pull(client, IDS))
        mapped = mappings(pserver.process.pid)
        client.close()
        eventually(lambda: mappings(pserver.process.pid) == 0, "the pserver to drop its mappings")

    for pushes, rows in enumerate(kept):
        expected = np.zeros_like(GRADIENTS)
        for _ in range(pushes):
            expected -= GRADIENTS
        np.testing.assert_array_equal(rows, expected)
    assert bool(mapped) == shares


def test_a_pserver_takes_numbers_for_zero_that_are_too_small_to_be_worth_their_time(
    tmp_path: Path,
) -> None:
    tiny = np.full((2, WIDTH), 1e-40, np.float32)
    tiny[1] = 1e-37
    with daemon(tmp_path) as pserver:
        client = joined(pserver.endpoint, mode=specs.Async())
        register(client, TABLE)
        push(client, IDS[:2], tiny)
        rows = pull(client, IDS[:2]).copy()
        client.close()

    np.testing.assert_array_equal(rows[0], 0.0)
    np.testing.assert_array_equal(rows[1], -tiny[1])
