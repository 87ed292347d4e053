"""`python -m tests.fuzz.honest ENDPOINT TOKEN_FILE`: a trainer that pushes and pulls rows.

Prints the number of its steps ten times a second, so that others see how fast it is served. Ends
with an error when one step fails; else when its standard input does.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np

from psrt.core import specs
from psrt.core.types import F32, I64
from psrt.rpc import pb
from psrt.rpc.access import assume_token_of
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_ROWS, PUSH_ROWS
from tests.support.pserver import CALL_TIMEOUT_S, joined, register

ROWS, WIDTH, IDS = 1_024, 16, 100_000
TABLE = specs.SparseTableSpec(
    "emb", WIDTH, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0), 1
)
_REPORT_S = 0.1


def step(client: Client, ids: I64, gradients: F32) -> None:
    """Push the gradients of some rows, and pull the rows."""
    header = pb.Header(push_key=client.next_push_key(), step=1)
    header.parts.add(kind=PUSH_ROWS, table="emb")
    header.parts.add(kind=PULL_ROWS, table="emb")
    sent = [ids, gradients, ids]
    client.call(Method.PUSH, header=header, tensors=sent, timeout_s=CALL_TIMEOUT_S)


def main(endpoint: str, token_file: str) -> None:
    assume_token_of(token_file)
    client = joined(endpoint, mode=specs.Async())
    register(client, TABLE)
    rng = np.random.default_rng(1)
    gradients = np.ones((ROWS, WIDTH), np.float32)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    steps, report_at = 0, 0.0
    while not over.is_set():
        first = int(rng.integers(0, IDS - ROWS))
        step(client, np.arange(first, first + ROWS), gradients)
        steps += 1
        if time.monotonic() >= report_at:
            report_at = time.monotonic() + _REPORT_S
            print(steps, flush=True)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
