"""A running trainer as seen from outside. In reading order:

spans     times of steps, of their waits and of calls to pservers, for those that record them
metrics   the pages of a trainer: /metrics, /healthz, /readyz, /status.json
watchers  those who watch: a service manager, and readers of the pages
"""

from psrt.trainer.observing.spans import SpanRecorders
from psrt.trainer.observing.watchers import Watchers, observed, observed_script, watchers_of_script

__all__ = ["SpanRecorders", "Watchers", "observed", "observed_script", "watchers_of_script"]
