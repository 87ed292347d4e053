"""Limits of this machine: memory, a loopback socket, matrix products.

    python -m benchmarks.limits [--seconds 1]

    memcpy_gb_per_s      bytes copied per second, 64 MiB at a time, by one thread and by two
    socket_mb_per_s      one way over a blocking TCP socket on 127.0.0.1, between two processes
    socket_round_trip_us one byte there and back, median
    blas_gflops          float32 products of 1024 × 1024, one BLAS thread

Compare a figure of psrt with these limits, measured in the same run. Python costs at most one call
per MiB in each of them.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

MIB = 1 << 20
COPIED_BYTES, SENT_BYTES, PIECE_BYTES = 64 * MIB, 64 * MIB, MIB
ROUND_TRIPS, BLAS_SIDE = 2000, 1024


def run(args: argparse.Namespace) -> harness.Figures:
    return {
        "memcpy_gb_per_s": round(memcpy_gb_per_s(1, args.seconds), 2),
        "memcpy_2_threads_gb_per_s": round(memcpy_gb_per_s(2, args.seconds), 2),
        **socket_figures(args.seconds),
        "blas_gflops": round(blas_gflops(args.seconds), 1),
    }


def memcpy_gb_per_s(threads: int, seconds: float) -> float:
    """GB written per second by threads that copy concurrently."""
    arrays = [np.ones((2, COPIED_BYTES), np.uint8) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def copy_all() -> None:
            list(pool.map(lambda pair: np.copyto(pair[0], pair[1]), arrays))

        return threads * COPIED_BYTES / best_s(copy_all, seconds) / 1e9


def blas_gflops(seconds: float) -> float:
    left, right, out = (np.ones((BLAS_SIDE, BLAS_SIDE), np.float32) for _ in range(3))
    return 2 * BLAS_SIDE**3 / best_s(lambda: np.matmul(left, right, out=out), seconds) / 1e9


def best_s(do: Callable[[], object], seconds: float) -> float:
    """The shortest time of a call; calls are repeated for `seconds`, at least three times."""
    taken: list[float] = []
    ends = time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < ends:
        started = time.perf_counter()
        do()
        taken.append(time.perf_counter() - started)
    return min(taken)


# --- a bare socket --------------------------------------------------------------------------------


def socket_figures(seconds: float) -> harness.Figures:
    with echo_process() as peer:
        rate = SENT_BYTES / best_s(lambda: send_one_way(peer), seconds)
        taken = [round_trip_s(peer) for _ in range(ROUND_TRIPS)]
    return {
        "socket_mb_per_s": round(rate / 1e6),
        "socket_round_trip_us": round(statistics.median(taken) * 1e6, 1),
    }


def send_one_way(peer: socket.socket) -> None:
    """Send `SENT_BYTES`; one byte comes back after all of them have arrived."""
    peer.sendall(b"s")
    piece = bytes(PIECE_BYTES)
    for _ in range(SENT_BYTES // PIECE_BYTES):
        peer.sendall(piece)
    peer.recv(1)


def round_trip_s(peer: socket.socket) -> float:
    started = time.perf_counter()
    peer.sendall(b"r")
    peer.recv(1)
    return time.perf_counter() - started


@contextlib.contextmanager
def echo_process() -> Iterator[socket.socket]:
    """A connection to a process that runs `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=answer, args=(server.getsockname()[1],), daemon=True)
        child.start()
        server.settimeout(60)
        peer, _ = server.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            yield peer
        finally:
            peer.close()
            child.join(10)


def answer(port: int) -> None:
    """Answer requests of the other process: `s` is followed by `SENT_BYTES`, `r` by nothing."""
    buffer = memoryview(bytearray(PIECE_BYTES))
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while asked := peer.recv(1):
            missing = SENT_BYTES if asked == b"s" else 0
            while missing:
                missing -= peer.recv_into(buffer[: min(missing, PIECE_BYTES)])
            peer.sendall(b"!")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    harness.main(parser, run)
