"""status: a running job as seen from outside, from the facts that its pservers report.

facts      what one pserver reports, as values
gathering  facts of all pservers of a job, asked side by side
waits      who waits for whom, and which trainer or pserver holds a job up
summaries  cuts and errors of a whole job
report     the facts as lines of text
"""

from psrt.status.facts import ClusterFacts, PserverFacts, Unreachable
from psrt.status.gathering import Gatherer
from psrt.status.report import report
from psrt.status.waits import Wait, waits

__all__ = ["ClusterFacts", "Gatherer", "PserverFacts", "Unreachable", "Wait", "report", "waits"]
