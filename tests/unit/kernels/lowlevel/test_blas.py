"""Thread counts of a BLAS are those of the moment."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from psrt.kernels.lowlevel.blas import thread_counts


def test_thread_counts_follow_what_others_set():
    counts = thread_counts()

    with threadpool_limits(1, user_api="blas"):
        assert {count() for count in counts} == {1}
        with threadpool_limits(2, user_api="blas"):
            assert {count() for count in counts} == {2}
        assert {count() for count in counts} == {1}
