"""The profiler of this process, which `fluid.profiler` begins and ends."""

from __future__ import annotations

from psrt.executor.profiling import Profiler

profiler: Profiler | None = None
