"""profiling: files in reading order.

costs         What a profile adds up to: cost per op and per span, the anatomy of a step, and
              both as text
chrome_trace  A profile as a timeline: Chrome's Trace Event Format, for chrome://tracing and
              ui.perfetto.dev
profile       A profiler: what every op and every named stop of a step took, on every thread
"""

from __future__ import annotations

from psrt.executor.profiling.profile import Category, Profiler, span_of

__all__ = ["Category", "Profiler", "span_of"]
