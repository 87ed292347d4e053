"""The number of BLAS threads of a program: one, as in PaddlePaddle, unless it asks for more.

Programs of a cluster share the cores of a host. With a thread for each core, a product that takes
0.1 ms takes some hundred where its threads wait for cores that others use.
"""

from __future__ import annotations

from functools import cache

from threadpoolctl import threadpool_limits

from psrt.config.load import cpu_threads, environment


@cache
def bound_blas() -> int:
    """Bound BLAS in this process, once; returns the number of threads.

    It is OMP_NUM_THREADS, as for PaddlePaddle, or the trainer's setting `cpu_threads`.
    """
    asked = environment().get("OMP_NUM_THREADS", "")
    count = int(asked) if asked.isdigit() and int(asked) else cpu_threads()
    threadpool_limits(count, user_api="blas")
    return count


__all__ = ["bound_blas"]
