"""profiling: files in reading order.

costs         cost per op and per span, the anatomy of a step, and both as text
chrome_trace  a profile in Chrome's Trace Event Format, for chrome://tracing and ui.perfetto.dev
profile       the profiler: time of every op and every named span of a step, on every thread
"""

from psrt.executor.profiling.profile import Category, Profiler, span_of

__all__ = ["Category", "Profiler", "span_of"]
